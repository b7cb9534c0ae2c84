// SPDX-License-Identifier: Apache-2.0
// covers: read, readv, preadv2, recv, recvfrom, recvmsg, recvmmsg, write, writev, send, sendto,
// covers: sendmsg, sendmmsg
#include "case.h"

int main(void) {
  int pair[2];
  static char buffer[1 << 16];
  struct iovec vector = {buffer, sizeof buffer};
  struct msghdr message = {.msg_iov = &vector, .msg_iovlen = 1};
  struct mmsghdr several = {.msg_hdr = message};
  tcp_pair(pair);
  SHOW(fcntl(pair[0], F_SETFL, O_NONBLOCK));
  SHOW(read(pair[0], buffer, sizeof buffer));
  SHOW(readv(pair[0], &vector, 1));
  SHOW(recv(pair[0], buffer, sizeof buffer, 0));
  SHOW(recvfrom(pair[0], buffer, sizeof buffer, 0, NULL, NULL));
  SHOW(recvmsg(pair[0], &message, 0));
  SHOW(recvmmsg(pair[0], &several, 1, 0, NULL));
  SHOW(preadv2(pair[0], &vector, 1, -1, RWF_NOWAIT));
  SHOW(recv(pair[1], buffer, sizeof buffer, MSG_DONTWAIT));
  // Not TCP: there the kernel finds room again when what was under way has arrived.
  NEED(!socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair));
  int full = 0;
  while (write(pair[0], buffer, sizeof buffer) > 0) full = 1;
  SHOW(full);
  SHOW(write(pair[0], buffer, sizeof buffer));
  SHOW(writev(pair[0], &vector, 1));
  SHOW(send(pair[0], buffer, sizeof buffer, 0));
  SHOW(sendto(pair[0], buffer, sizeof buffer, 0, NULL, 0));
  SHOW(sendmsg(pair[0], &message, 0));
  SHOW(sendmmsg(pair[0], &several, 1, 0));
}
