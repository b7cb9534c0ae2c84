// SPDX-License-Identifier: Apache-2.0
// covers: read, close
#include "case.h"

int main(void) {
  int pair[2], status;
  char buffer[64] = {0};
  tcp_pair(pair);
  NEED(write(pair[0], "for the child, for the parent", 29) == 29);
  settle(pair[1], 29);
  fflush(stdout);
  if (fork() == 0) {
    SHOW(read(pair[1], buffer, 14));
    puts(buffer);
    SHOW(close(pair[1]));
    SHOW(close(pair[0]));
    if (fork() == 0) exit(7);
    SHOW(wait(&status) > 0);
    exit(WEXITSTATUS(status));
  }
  SHOW(wait(&status) > 0);
  SHOW(WEXITSTATUS(status));
  SHOW(read(pair[1], buffer, sizeof buffer));
  puts(buffer);
}
