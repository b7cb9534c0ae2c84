// SPDX-License-Identifier: Apache-2.0
// covers: read, readv, recv, recvfrom, recvmsg, write
#include "case.h"

static volatile sig_atomic_t calls;
static int wake = -1;

static void note(int number) {
  (void)number;
  calls++;
  if (wake >= 0 && write(wake, "woken", 5) != 5) _exit(98);
}

int main(void) {
  int pair[2];
  char buffer[64] = {0};
  struct iovec vector = {buffer, sizeof buffer};
  struct msghdr message = {.msg_iov = &vector, .msg_iovlen = 1};
  tcp_pair(pair);
  on_signal(SIGALRM, note, 0);
  alarm_in(30);
  SHOW(read(pair[0], buffer, sizeof buffer));
  alarm_in(30);
  SHOW(readv(pair[0], &vector, 1));
  alarm_in(30);
  SHOW(recv(pair[0], buffer, sizeof buffer, 0));
  alarm_in(30);
  SHOW(recvmsg(pair[0], &message, 0));
  on_signal(SIGALRM, note, SA_RESTART);
  wake = pair[1];
  alarm_in(30);
  SHOW(read(pair[0], buffer, sizeof buffer));
  puts(buffer);
  alarm_in(30);
  SHOW(recvfrom(pair[0], buffer, sizeof buffer, 0, NULL, NULL));
  SHOW(calls);
}
