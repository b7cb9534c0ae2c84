// SPDX-License-Identifier: Apache-2.0
// covers: __read_chk, __recv_chk, __recvfrom_chk
// cc: -O2 -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2
// The checked forms that the compiler puts in, and their end on an overflow.
#include "case.h"

int main(int count, char **arguments) {
  int pair[2];
  char buffer[8];
  size_t length = strtoul(count > 1 ? arguments[1] : "8", NULL, 10);
  on_signal(SIGABRT, SIG_DFL, 0);
  tcp_pair(pair);
  NEED(write(pair[0], "0123456789abcdefghijklmnop", 26) == 26);
  settle(pair[1], 26);
  SHOW(read(pair[1], buffer, length));
  SHOW(recv(pair[1], buffer, length, 0));
  SHOW(recvfrom(pair[1], buffer, length, 0, NULL, NULL));
  fflush(stdout);
  SHOW(recv(pair[1], buffer, length * 2, 0));
}
