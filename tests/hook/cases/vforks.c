// SPDX-License-Identifier: Apache-2.0
// covers: read, close, dup2, vfork
// A child of vfork borrows its parent's memory: what it closes is closed for itself alone.
#include "case.h"

static int child(int from, int closing) {
  pid_t pid = vfork();
  if (pid == 0) {
    close(closing);
    dup2(from, 0);
    execlp("cat", "cat", NULL);
    _exit(97);
  }
  return pid;
}

int main(void) {
  int pair[2], other[2], status;
  char buffer[64] = {0};
  tcp_pair(pair);
  tcp_pair(other);
  NEED(write(pair[0], "before", 6) == 6);
  settle(pair[1], 6);
  SHOW(read(pair[1], buffer, 3));
  NEED(write(other[0], "into cat\n", 9) == 9);
  SHOW(shutdown(other[0], SHUT_WR));
  fflush(stdout);
  NEED(child(other[1], pair[1]) > 0);
  SHOW(wait(&status) > 0);
  SHOW(status);
  SHOW(read(pair[1], buffer, 3));
  SHOW(read(0, buffer, sizeof buffer));
  SHOW(vfork() == 0 ? (_exit(5), 0) : 1);
  SHOW(wait(&status) > 0);
  SHOW(WEXITSTATUS(status));
}
