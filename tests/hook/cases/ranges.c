// SPDX-License-Identifier: Apache-2.0
// covers: read, close_range, closefrom, syscall
#include "case.h"

int main(void) {
  int pair[2];
  char buffer[64] = {0};
  tcp_pair(pair);
  NEED(dup2(pair[1], 100) == 100);
  NEED(dup2(pair[1], 200) == 200);
  NEED(write(pair[0], "abcdefgh", 8) == 8);
  SHOW(read(100, buffer, 2));
  SHOW(syscall(SYS_close_range, 100, 150, 0));
  SHOW(read(100, buffer, 2));
  SHOW(read(200, buffer, 2));
#if __GLIBC_PREREQ(2, 34)
  SHOW(close_range(200, 200, CLOSE_RANGE_CLOEXEC));
  SHOW(read(200, buffer, 2));
  SHOW(close_range(150, 250, 0));
  SHOW(close_range(250, 150, 0));
  SHOW(read(200, buffer, 2));
  NEED(dup2(pair[1], 300) == 300);
  closefrom(250);
  SHOW(read(300, buffer, 2));
#endif
  SHOW(read(pair[1], buffer, 2));
  SHOW(syscall(SYS_close, pair[1]));
  SHOW(read(pair[1], buffer, 2));
}
