// SPDX-License-Identifier: Apache-2.0
// covers: read, readv, preadv2, recv, recvfrom, recvmsg, recvmmsg, write, writev, send, sendmsg,
// covers: sendmmsg, accept
#include "case.h"

static volatile sig_atomic_t calls;
static int wake = -1;

static void note(int number) {
  (void)number;
  calls++;
  if (wake >= 0 && write(wake, "woken", 5) != 5) _exit(98);
}

// Again and again: on a busy machine the first signal may come before the call.
static void signals_every(int milliseconds) {
  struct timeval often = {.tv_usec = milliseconds * 1000};
  struct itimerval timer = {.it_value = often, .it_interval = often};
  NEED(!setitimer(ITIMER_REAL, &timer, NULL));
}

#define INTERRUPTED(call) \
  do { \
    signals_every(20); \
    SHOW(call); \
    signals_every(0); \
  } while (0)

int main(void) {
  int pair[2], full[2];
  char buffer[64] = {0};
  struct iovec vector = {buffer, sizeof buffer};
  struct msghdr message = {.msg_iov = &vector, .msg_iovlen = 1};
  struct mmsghdr several = {.msg_hdr = message};
  struct sockaddr_in address;
  int listener = listening(&address);
  tcp_pair(pair);
  NEED(!socketpair(AF_UNIX, SOCK_STREAM, 0, full));
  while (send(full[0], buffer, sizeof buffer, MSG_DONTWAIT) > 0) continue;
  on_signal(SIGALRM, note, 0);
  INTERRUPTED(read(pair[0], buffer, sizeof buffer));
  INTERRUPTED(readv(pair[0], &vector, 1));
  INTERRUPTED(preadv2(pair[0], &vector, 1, -1, 0));
  INTERRUPTED(recv(pair[0], buffer, sizeof buffer, 0));
  INTERRUPTED(recvmsg(pair[0], &message, 0));
  INTERRUPTED(recvmmsg(pair[0], &several, 1, 0, NULL));
  INTERRUPTED(write(full[0], buffer, sizeof buffer));
  INTERRUPTED(writev(full[0], &vector, 1));
  INTERRUPTED(send(full[0], buffer, sizeof buffer, 0));
  INTERRUPTED(sendmsg(full[0], &message, 0));
  INTERRUPTED(sendmmsg(full[0], &several, 1, 0));
  INTERRUPTED(accept(listener, NULL, NULL));
  INTERRUPTED(accept4(listener, NULL, NULL, SOCK_CLOEXEC));
  on_signal(SIGALRM, note, SA_RESTART);
  calls = 0;
  wake = pair[1];
  alarm_in(30);
  SHOW(read(pair[0], buffer, sizeof buffer));
  puts(buffer);
  alarm_in(30);
  SHOW(recvfrom(pair[0], buffer, sizeof buffer, 0, NULL, NULL));
  SHOW(calls);
}
