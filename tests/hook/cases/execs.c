// SPDX-License-Identifier: Apache-2.0
// covers: read, write
#include "case.h"
#include <spawn.h>

extern char **environ;

static int after(char **arguments) {
  char buffer[64] = {0};
  int fd = atoi(arguments[1]);
  SHOW(read(fd, buffer, 6));
  puts(buffer);
  SHOW(read(fd, buffer, 6));
  SHOW(write(fd, "answer", 6));
  return 3;
}

int main(int count, char **arguments) {
  int pair[2], status;
  char buffer[64] = {0}, number[16];
  if (count > 1) return after(arguments);
  tcp_pair(pair);
  NEED(write(pair[0], "abcdefghijkl", 12) == 12);
  settle(pair[1], 12);
  snprintf(number, sizeof number, "%d", pair[1]);
  char *again[] = {arguments[0], number, NULL};
  fflush(stdout);
  pid_t pid;
  NEED(!posix_spawn(&pid, "/proc/self/exe", NULL, NULL, again, environ));
  SHOW(waitpid(pid, &status, 0) == pid);
  SHOW(WEXITSTATUS(status));
  SHOW(read(pair[0], buffer, sizeof buffer));
  fflush(stdout);
  NEED(write(pair[0], "abcdefghijkl", 12) == 12);
  settle(pair[1], 12);
  SHOW(system("exit 4") >> 8);
  FILE *pipe = popen("echo from a pipe", "r");
  NEED(fgets(buffer, sizeof buffer, pipe));
  printf("%s", buffer);
  SHOW(pclose(pipe));
  execve("/proc/self/exe", again, environ);
}
