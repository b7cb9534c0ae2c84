// SPDX-License-Identifier: Apache-2.0
// Moves bytes in signal handlers on a stack of their own, and prints how many bytes of it each call
// takes.
#include "../cases/case.h"

#define PAINT 0xa5
#define NEEDLES 100
#define LARGE (100 << 10)

static unsigned char stack[128 << 10];
static unsigned char *volatile top;
static char bytes[LARGE], room[LARGE];
static int pair[2];
static size_t length;
static volatile int what;

static struct iovec vector;
static struct mmsghdr message = {.msg_hdr = {.msg_iov = &vector, .msg_iovlen = 1}};

#define SEND(call) (vector = (struct iovec){bytes, length}, call)
#define RECEIVE(call) (vector = (struct iovec){room, sizeof room}, call)

static __attribute__((noinline)) void call_it(void) {
  switch (what) {
    case 0: write(pair[0], bytes, length); break;
    case 1: read(pair[1], room, sizeof room); break;
    case 2: send(pair[0], bytes, length, MSG_NOSIGNAL); break;
    case 3: recv(pair[1], room, sizeof room, 0); break;
    case 4: SEND(writev(pair[0], &vector, 1)); break;
    case 5: RECEIVE(readv(pair[1], &vector, 1)); break;
    case 6: SEND(sendmsg(pair[0], &message.msg_hdr, 0)); break;
    case 7: RECEIVE(recvmsg(pair[1], &message.msg_hdr, 0)); break;
    case 8: SEND(sendmmsg(pair[0], &message, 1, 0)); break;
    case 9: RECEIVE(recvmmsg(pair[1], &message, 1, 0, NULL)); break;
  }
}

static const char *names[] = {"write", "read", "send", "recv", "writev",
                              "readv", "sendmsg", "recvmsg", "sendmmsg", "recvmmsg"};

static void handle(int signal) {
  top = __builtin_frame_address(0);
  call_it();
  (void)signal;
}

static void *measure(void *unused) {
  stack_t own = {.ss_sp = stack, .ss_size = sizeof stack};
  NEED(!sigaltstack(&own, NULL));
  for (int number = 0; number < 20; number++) {
    length = number < 10 ? NEEDLES * 6 : LARGE;
    what = number % 10;
    if (what % 2) NEED(poll(&(struct pollfd){pair[1], POLLIN}, 1, -1) == 1);
    memset(stack, PAINT, sizeof stack);
    raise(SIGUSR1);
    unsigned char *lowest = stack;
    while (*lowest == PAINT) lowest++;
    printf("%s-%zu %ld\n", names[what], length, (long)(top - lowest));
    if (what % 2) while (recv(pair[1], room, sizeof room, MSG_DONTWAIT) > 0);
  }
  return unused;
}

int main(void) {
  struct sigaction action = {.sa_handler = handle, .sa_flags = SA_ONSTACK};
  NEED(!sigaction(SIGUSR1, &action, NULL));
  for (int number = 0; number < NEEDLES; number++) memcpy(bytes + 6 * number, "needle", 6);
  tcp_pair(pair);
  for (int end = 0; end < 2; end++) NEED(!fcntl(pair[end], F_SETFL, O_NONBLOCK));
  pthread_t thread;
  NEED(!pthread_create(&thread, NULL, measure, NULL));
  pthread_join(thread, NULL);
}
