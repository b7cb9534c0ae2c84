// SPDX-License-Identifier: Apache-2.0
// What every case needs: sockets, and a line for every call with its result and errno.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

// No call sets it: what is still there after a call was left alone.
#define UNTOUCHED 4242

#define SHOW(call) \
  do { \
    errno = UNTOUCHED; \
    long result_ = (long)(call); \
    int errno_ = errno; \
    printf("%d: %s = %ld, errno %d\n", __LINE__, #call, result_, errno_); \
    fflush(stdout); \
  } while (0)

#define NEED(condition) \
  do { \
    if (!(condition)) { \
      fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #condition, strerror(errno)); \
      exit(99); \
    } \
  } while (0)

// A listening socket of 127.0.0.1, and its address.
static inline int listening(struct sockaddr_in *address) {
  socklen_t length = sizeof *address;
  int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  *address = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  NEED(!bind(fd, (struct sockaddr *)address, sizeof *address));
  NEED(!listen(fd, 16));
  NEED(!getsockname(fd, (struct sockaddr *)address, &length));
  return fd;
}

// Two ends of a TCP connection.
static inline void tcp_pair(int pair[2]) {
  struct sockaddr_in address;
  int listener = listening(&address);
  pair[0] = socket(AF_INET, SOCK_STREAM, 0);
  NEED(!connect(pair[0], (struct sockaddr *)&address, sizeof address));
  pair[1] = accept(listener, NULL, NULL);
  NEED(pair[1] >= 0);
  close(listener);
  int on = 1;
  setsockopt(pair[0], IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

// Until `count` bytes are there to be read.
static inline void settle(int fd, ssize_t count) {
  char buffer[65536];
  while (recv(fd, buffer, sizeof buffer, MSG_PEEK | MSG_DONTWAIT) < count) usleep(1000);
}

// Until the peer's end or refusal is known: `events`, or an error or a hang-up.
static inline void arrives(int fd, short events) {
  NEED(poll(&(struct pollfd){.fd = fd, .events = events}, 1, 10000) == 1);
}

static inline void on_signal(int number, void (*handler)(int), int flags) {
  struct sigaction action = {.sa_handler = handler, .sa_flags = flags};
  NEED(!sigaction(number, &action, NULL));
}

static inline void alarm_in(int milliseconds) {
  struct itimerval timer = {.it_value.tv_usec = milliseconds * 1000};
  NEED(!setitimer(ITIMER_REAL, &timer, NULL));
}
