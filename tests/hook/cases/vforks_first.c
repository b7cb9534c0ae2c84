// SPDX-License-Identifier: Apache-2.0
// covers: close, dup2, vfork
// A program makes a child before it has read or written anything, then is a client.
#include "case.h"

int main(void) {
  int pair[2], status;
  char buffer[64];
  pid_t pid = vfork();
  if (pid == 0) {
    close(100);
    dup2(1, 55);
    execlp("true", "true", NULL);
    _exit(97);
  }
  NEED(waitpid(pid, &status, 0) == pid);
  SHOW(status);
  tcp_pair(pair);
  SHOW(write(pair[0], "a needle", 8));
  arrives(pair[1], POLLIN);
  SHOW(read(pair[1], buffer, sizeof buffer));
}
