// SPDX-License-Identifier: Apache-2.0
// covers: read, write, close, dup
// A signal handler that reads and writes while the thread is in a read.
#include "case.h"

static int inner[2];

static void handler(int number) {
  char buffer[16];
  int before = errno;
  (void)number;
  if (write(inner[0], "inside", 6) != 6) _exit(96);
  if (read(inner[1], buffer, sizeof buffer) != 6) _exit(95);
  if (close(dup(inner[0]))) _exit(94);
  errno = before;
}

int main(void) {
  int pair[2];
  char buffer[64] = {0};
  tcp_pair(pair);
  NEED(!socketpair(AF_UNIX, SOCK_STREAM, 0, inner));
  on_signal(SIGALRM, handler, 0);
  for (int i = 0; i < 5; i++) {
    alarm_in(10);
    SHOW(read(pair[0], buffer, sizeof buffer));
  }
  on_signal(SIGPROF, handler, SA_RESTART);
  struct itimerval often = {.it_value.tv_usec = 500, .it_interval.tv_usec = 500};
  NEED(!setitimer(ITIMER_PROF, &often, NULL));
  long total = 0;
  for (int i = 0; i < 20000; i++) {
    NEED(write(pair[1], "0123456789", 10) == 10);
    total += read(pair[0], buffer, 10);
  }
  while (total < 200000) total += read(pair[0], buffer, sizeof buffer);
  SHOW(total);
}
