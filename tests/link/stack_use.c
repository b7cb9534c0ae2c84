/* SPDX-License-Identifier: Apache-2.0 */
/* Prints how many bytes of stack the calls on a connection take, each in a handler with a stack of
 * its own. The connections are new, and at first not linked. */
#include "../hook/cases/case.h"
#include <sys/epoll.h>
#include <sys/select.h>

#define PAINT 0xa5
#define CONNECTIONS 20
#define CALLS 16
#define LARGE (100 << 10)

static unsigned char stack[128 << 10];
static unsigned char *volatile top;
static char bytes[LARGE], room[LARGE];
static int pair[2], set;
static volatile int what;

static struct iovec vector;
static struct mmsghdr message = {.msg_hdr = {.msg_iov = &vector, .msg_iovlen = 1}};

static const char *names[CALLS] = {"write", "poll", "read", "send", "select", "recv", "writev", "epoll_wait",
                                   "readv", "sendmsg", "recvmsg", "sendmmsg", "recvmmsg", "dup", "fcntl", "close"};

static __attribute__((noinline)) void call_it(void) {
  struct pollfd place = {pair[1], POLLIN, 0};
  struct epoll_event event;
  fd_set readable;
  switch (what) {
    case 0: write(pair[0], bytes, 6); break;
    case 1: poll(&place, 1, -1); break;
    case 2: read(pair[1], room, 6); break;
    case 3: send(pair[0], bytes, 6, 0); break;
    case 4:
      FD_ZERO(&readable);
      FD_SET(pair[1], &readable);
      select(pair[1] + 1, &readable, NULL, NULL, NULL);
      break;
    case 5: recv(pair[1], room, 6, 0); break;
    case 6: writev(pair[0], &vector, 1); break;
    case 7: epoll_wait(set, &event, 1, -1); break;
    case 8: readv(pair[1], &vector, 1); break;
    case 9: sendmsg(pair[0], &message.msg_hdr, 0); break;
    case 10: recvmsg(pair[1], &message.msg_hdr, 0); break;
    case 11: sendmmsg(pair[0], &message, 1, 0); break;
    case 12: recvmmsg(pair[1], &message, 1, 0, NULL); break;
    case 13: close(dup(pair[1])); break;
    case 14: fcntl(pair[1], F_SETFL, 0); break;
    case 15: close(pair[0]); break;
  }
}

static void handle(int signal) {
  top = __builtin_frame_address(0);
  call_it();
  (void)signal;
}

static void *measure(void *unused) {
  static long most[CALLS];
  stack_t own = {.ss_sp = stack, .ss_size = sizeof stack};
  NEED(!sigaltstack(&own, NULL));
  for (int number = 0; number < CONNECTIONS; number++) {
    tcp_pair(pair);
    set = epoll_create1(0);
    NEED(!epoll_ctl(set, EPOLL_CTL_ADD, pair[1], &(struct epoll_event){.events = EPOLLIN}));
    for (int round = 0; round < 8; round++)
      for (what = 0; what < (round < 7 ? 13 : CALLS); what++) {
        // Each connection begins with another call.
        if (!round && number % 2 && what < 3) continue;
        vector = (struct iovec){what % 2 ? bytes : room, 6};
        memset(stack, PAINT, sizeof stack);
        raise(SIGUSR1);
        unsigned char *lowest = stack;
        while (*lowest == PAINT) lowest++;
        if (top - lowest > most[what]) most[what] = top - lowest;
        if (what == 12) {
          // The other direction, so that the connection becomes a link.
          NEED(write(pair[1], bytes, 6) == 6 && recv(pair[0], room, 6, MSG_WAITALL) == 6);
        }
      }
    close(set);
    close(pair[1]);
  }
  for (what = 0; what < CALLS; what++) printf("%s %ld\n", names[what], most[what]);
  return unused;
}

int main(void) {
  struct sigaction action = {.sa_handler = handle, .sa_flags = SA_ONSTACK};
  NEED(!sigaction(SIGUSR1, &action, NULL));
  pthread_t thread;
  NEED(!pthread_create(&thread, NULL, measure, NULL));
  pthread_join(thread, NULL);
}
