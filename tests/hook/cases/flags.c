// SPDX-License-Identifier: Apache-2.0
// covers: read, recv, send
#include "case.h"

int main(void) {
  int pair[2];
  char buffer[64] = {0};
  tcp_pair(pair);
  SHOW(send(pair[0], "abcdefghij", 10, MSG_NOSIGNAL));
  settle(pair[1], 10);
  SHOW(recv(pair[1], buffer, 4, MSG_PEEK));
  SHOW(recv(pair[1], buffer, sizeof buffer, MSG_PEEK));
  SHOW(recv(pair[1], NULL, 3, MSG_TRUNC));
  SHOW(recv(pair[1], buffer, 7, MSG_WAITALL));
  printf("%.7s\n", buffer);
  SHOW(send(pair[0], "more", 4, MSG_MORE));
  SHOW(send(pair[0], "!", 1, 0));
  SHOW(recv(pair[1], buffer, 5, MSG_WAITALL));
  SHOW(send(pair[0], "urgent", 6, MSG_OOB));
  settle(pair[1], 5);
  SHOW(recv(pair[1], buffer, sizeof buffer, MSG_OOB));
  SHOW(recv(pair[1], buffer, sizeof buffer, 0));
  SHOW(recv(pair[1], buffer, sizeof buffer, MSG_DONTWAIT | MSG_ERRQUEUE));

  int datagrams[2];
  NEED(!socketpair(AF_UNIX, SOCK_DGRAM, 0, datagrams));
  SHOW(send(datagrams[0], "0123456789", 10, 0));
  SHOW(recv(datagrams[1], buffer, 4, MSG_PEEK | MSG_TRUNC));
  SHOW(recv(datagrams[1], buffer, 4, MSG_TRUNC));
  SHOW(recv(datagrams[1], buffer, 4, MSG_DONTWAIT));
  SHOW(send(datagrams[0], "0123456789", 10, 0));
  SHOW(read(datagrams[1], buffer, 4));
  SHOW(send(datagrams[0], "", 0, 0));
  SHOW(recv(datagrams[1], buffer, sizeof buffer, 0));
}
