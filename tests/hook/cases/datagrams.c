// SPDX-License-Identifier: Apache-2.0
// covers: read, recvfrom, write, sendto, connect, socket, close
#include "case.h"

int main(void) {
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)}, from;
  socklen_t length = sizeof address;
  char buffer[64] = {0};
  int sender = socket(AF_INET, SOCK_DGRAM, 0), receiver = socket(AF_INET, SOCK_DGRAM, 0);
  NEED(!bind(receiver, (struct sockaddr *)&address, sizeof address));
  NEED(!getsockname(receiver, (struct sockaddr *)&address, &length));
  SHOW(sendto(sender, "unconnected", 11, 0, (struct sockaddr *)&address, sizeof address));
  SHOW(recvfrom(receiver, buffer, 4, 0, (struct sockaddr *)&from, &length));
  SHOW(from.sin_family);
  SHOW(sendto(receiver, "back", 4, 0, (struct sockaddr *)&from, length));
  SHOW(read(sender, buffer, sizeof buffer));
  SHOW(write(sender, "no peer", 7));
  SHOW(connect(sender, (struct sockaddr *)&address, sizeof address));
  SHOW(write(sender, "connected", 9));
  SHOW(recvfrom(receiver, buffer, sizeof buffer, MSG_PEEK, NULL, NULL));
  SHOW(recvfrom(receiver, buffer, sizeof buffer, 0, NULL, NULL));
  SHOW(close(receiver));
  SHOW(write(sender, "refused", 7));
  arrives(sender, 0);
  SHOW(write(sender, "refused", 7));
  int pair[2];
  NEED(!socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair));
  SHOW(write(pair[0], "packet", 6));
  SHOW(read(pair[1], buffer, 3));
  SHOW(write(pair[0], "", 0));
  SHOW(close(pair[0]));
  SHOW(read(pair[1], buffer, 3));
}
