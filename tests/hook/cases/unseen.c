// SPDX-License-Identifier: Apache-2.0
// covers: recv
// A descriptor becomes another socket by a call that the hook does not see.
#include "case.h"

int main(void) {
  int tcp[2], local[2];
  char buffer[64] = {0};
  tcp_pair(tcp);
  NEED(!socketpair(AF_UNIX, SOCK_STREAM, 0, local));
  NEED(syscall(SYS_dup3, tcp[1], local[1], 0) == local[1]);
  SHOW(send(tcp[0], "abcdefghij", 10, 0));
  settle(local[1], 10);
  // TCP discards them, and writes nothing.
  SHOW(recv(local[1], NULL, 3, MSG_TRUNC));
  SHOW(recv(local[1], (void *)4096, 2, MSG_TRUNC));
  SHOW(recv(local[1], buffer, sizeof buffer, 0));
  printf("%s\n", buffer);
}
