// SPDX-License-Identifier: Apache-2.0
// covers: read, write, close, vfork
// A time-out comes while a child of vfork runs: its handler runs in the parent before vfork
// returns there. It closes a socket and makes others, and jumps away.
#include "case.h"
#include <setjmp.h>

static sigjmp_buf back;
static int pair[2], pipes[2], later[2];

static void handler(int number) {
  char buffer[16];
  (void)number;
  if (write(pair[0], "needle 1", 8) != 8 || read(pair[1], buffer, 8) != 8) _exit(96);
  close(pipes[0]);
  close(pipes[1]);
  tcp_pair(later);
  siglongjmp(back, 1);
}

int main(void) {
  char buffer[16];
  tcp_pair(pair);
  NEED(!pipe(pipes));
  // Known to be pipes.
  SHOW(write(pipes[1], "x", 1));
  SHOW(read(pipes[0], buffer, 1));
  on_signal(SIGALRM, handler, 0);
  if (!sigsetjmp(back, 1)) {
    alarm_in(50);
    pid_t pid = vfork();
    if (pid == 0) {
      struct timespec while_the_parent_waits = {.tv_nsec = 300000000};
      nanosleep(&while_the_parent_waits, NULL);
      _exit(0);
    }
    puts("not interrupted");
  }
  SHOW(write(pair[0], "needle 2", 8));
  SHOW(read(pair[1], buffer, 8));
  SHOW(write(later[0], "needle 3", 8));
  SHOW(read(later[1], buffer, 8));
  // Another child closes what is its own.
  pid_t pid = vfork();
  if (pid == 0) {
    close(pair[0]);
    _exit(0);
  }
  SHOW(write(pair[0], "needle 4", 8));
  SHOW(read(pair[1], buffer, 8));
}
