// SPDX-License-Identifier: Apache-2.0
// covers: syscall
// `syscall` with all of its arguments.
#include "case.h"

int main(void) {
  int pair[2];
  char buffer[64] = {0};
  tcp_pair(pair);
  SHOW(syscall(SYS_write, pair[0], "raw", 3));
  SHOW(syscall(SYS_read, pair[1], buffer, sizeof buffer));
  puts(buffer);
  SHOW(syscall(SYS_sendto, pair[0], "six", 3, MSG_NOSIGNAL, NULL, 0));
  SHOW(syscall(SYS_recvfrom, pair[1], buffer, sizeof buffer, 0, NULL, NULL));
  char *page = (char *)syscall(SYS_mmap, NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  SHOW(page[4095]);
  SHOW(syscall(SYS_mmap, NULL, 4096, PROT_READ, MAP_PRIVATE, -1, 0));
  SHOW(syscall(-1));
  SHOW(syscall(SYS_close, -1));
  SHOW(syscall(SYS_getpid) == getpid());
  SHOW(syscall(SYS_io_uring_setup, 0, NULL) < 0);
  fflush(stdout);
  if (syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL) == 0) _exit(6);
  int status;
  SHOW(wait(&status) > 0);
  SHOW(WEXITSTATUS(status));
}
