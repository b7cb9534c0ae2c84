// SPDX-License-Identifier: Apache-2.0
// covers: read, recv, write, send, close
#include "case.h"

int main(void) {
  int pair[2];
  char buffer[64] = {0};
  tcp_pair(pair);
  SHOW(write(pair[0], "0123456789", 10));
  settle(pair[1], 10);
  SHOW(read(pair[1], buffer, 4));
  SHOW(recv(pair[1], buffer + 4, 4, 0));
  SHOW(read(pair[1], buffer + 8, 0));
  SHOW(read(pair[1], buffer + 8, 40));
  puts(buffer);
  SHOW(write(pair[0], "x", 0));
  SHOW(send(pair[0], NULL, 0, 0));
  SHOW(shutdown(pair[0], SHUT_WR));
  SHOW(read(pair[1], buffer, 40));
  SHOW(write(pair[1], "back", 4));
  SHOW(read(pair[0], buffer, 40));
  SHOW(close(pair[1]));
  SHOW(read(pair[0], buffer, 40));
  SHOW(close(pair[0]));
  SHOW(read(pair[0], buffer, 40));
  SHOW(close(pair[0]));
}
