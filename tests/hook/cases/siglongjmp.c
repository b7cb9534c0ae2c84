// SPDX-License-Identifier: Apache-2.0
// covers: read, write, recv
// A time-out that jumps out of whatever the thread is in, again and again.
#include "case.h"
#include <setjmp.h>

static sigjmp_buf back;
static volatile sig_atomic_t jumps;

static void jump(int number) {
  (void)number;
  jumps++;
  siglongjmp(back, 1);
}

// Deeper in the stack than the calls that were left.
static __attribute__((noinline)) void deeper(int pair[2]) {
  char buffer[16];
  SHOW(write(pair[1], "after", 5));
  SHOW(read(pair[0], buffer, sizeof buffer));
}

int main(void) {
  int pair[2];
  char text[512], buffer[512];
  for (size_t at = 0; at < sizeof text; at += 8) memcpy(text + at, "needle. ", 8);
  NEED(!socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
  on_signal(SIGALRM, jump, 0);
  struct itimerval often = {{.tv_usec = 1000}, {.tv_usec = 1000}}, never = {0};
  NEED(!setitimer(ITIMER_REAL, &often, NULL));
  sigsetjmp(back, 1);
  while (jumps < 60) {
    while (recv(pair[0], buffer, sizeof buffer, MSG_DONTWAIT) > 0) continue;
    NEED(write(pair[1], text, sizeof text) == sizeof text);
    NEED(read(pair[0], buffer, sizeof buffer) == sizeof buffer);
  }
  NEED(!setitimer(ITIMER_REAL, &never, NULL));
  while (recv(pair[0], buffer, sizeof buffer, MSG_DONTWAIT) > 0) continue;
  // Long enough for a ring that is full to be emptied.
  usleep(200000);
  deeper(pair);
}
