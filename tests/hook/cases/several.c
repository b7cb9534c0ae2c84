// SPDX-License-Identifier: Apache-2.0
// covers: recvmmsg, sendmmsg
#include "case.h"

int main(void) {
  int pair[2];
  char buffers[4][8] = {{0}};
  struct iovec in[4], out[3] = {{"one", 3}, {"four five", 9}, {"", 0}};
  struct mmsghdr receive[4] = {0}, transmit[3] = {0};
  struct timespec soon = {.tv_nsec = 30000000};
  for (int i = 0; i < 4; i++) {
    in[i] = (struct iovec){buffers[i], sizeof buffers[i]};
    receive[i].msg_hdr = (struct msghdr){.msg_iov = &in[i], .msg_iovlen = 1};
  }
  for (int i = 0; i < 3; i++) transmit[i].msg_hdr = (struct msghdr){.msg_iov = &out[i], .msg_iovlen = 1};
  NEED(!socketpair(AF_UNIX, SOCK_DGRAM, 0, pair));
  SHOW(sendmmsg(pair[0], transmit, 3, 0));
  SHOW(recvmmsg(pair[1], receive, 2, 0, NULL));
  SHOW(recvmmsg(pair[1], receive + 2, 2, MSG_WAITFORONE, &soon));
  for (int i = 0; i < 4; i++) printf("%u %.8s %x\n", receive[i].msg_len, buffers[i], receive[i].msg_hdr.msg_flags);
  SHOW(sendmmsg(pair[0], transmit, 0, 0));
  SHOW(sendmmsg(pair[0], (struct mmsghdr *)8, 2, 0));
  SHOW(recvmmsg(pair[1], (struct mmsghdr *)8, 2, MSG_DONTWAIT, NULL));
  transmit[1].msg_hdr.msg_iov = (struct iovec *)8;
  SHOW(sendmmsg(pair[0], transmit, 3, 0));
  SHOW(recvmmsg(pair[1], receive, 4, MSG_DONTWAIT, NULL));
  tcp_pair(pair);
  transmit[1].msg_hdr.msg_iov = &out[1];
  SHOW(sendmmsg(pair[0], transmit, 2, 0));
  settle(pair[1], 12);
  SHOW(recvmmsg(pair[1], receive, 4, MSG_DONTWAIT, NULL));
  SHOW(receive[0].msg_len);
}
