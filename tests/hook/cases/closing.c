// SPDX-License-Identifier: Apache-2.0
// covers: read, recvmsg, write, accept, close
// One thread closes or shuts down what another is in a call with.
#include "case.h"

static int pair[2], listener, full[2];

static void *reader(void *nothing) {
  char buffer[64] = {0};
  (void)nothing;
  SHOW(read(pair[0], buffer, sizeof buffer));
  puts(buffer);
  SHOW(read(pair[0], buffer, sizeof buffer));
  return NULL;
}

static void *receiver(void *nothing) {
  char buffer[64] = {0};
  struct iovec vector = {buffer, sizeof buffer};
  struct msghdr message = {.msg_iov = &vector, .msg_iovlen = 1};
  (void)nothing;
  SHOW(recvmsg(pair[0], &message, 0));
  puts(buffer);
  SHOW(recvmsg(pair[0], &message, 0));
  return NULL;
}

static void *acceptor(void *nothing) {
  (void)nothing;
  SHOW(accept(listener, NULL, NULL));
  SHOW(accept(listener, NULL, NULL));
  return NULL;
}

static void *writer(void *nothing) {
  static char buffer[1 << 20];
  (void)nothing;
  on_signal(SIGPIPE, SIG_IGN, 0);
  // As much as there is room for before it is shut down.
  SHOW(write(full[0], buffer, sizeof buffer) < (ssize_t)sizeof buffer);
  SHOW(write(full[0], buffer, sizeof buffer));
  return NULL;
}

static pid_t number;
static void *(*body)(void *);

static void *numbered(void *nothing) {
  __atomic_store_n(&number, gettid(), __ATOMIC_RELEASE);
  return body(nothing);
}

// Whether the kernel holds the thread until something happens.
static int sleeps(pid_t of) {
  char path[64], line[256];
  snprintf(path, sizeof path, "/proc/self/task/%d/stat", of);
  FILE *file = fopen(path, "re");
  NEED(file && fgets(line, sizeof line, file));
  fclose(file);
  return !strncmp(strrchr(line, ')'), ") S", 3);
}

static pthread_t in_a_call(void *(*what)(void *)) {
  pthread_t thread;
  number = 0;
  body = what;
  NEED(!pthread_create(&thread, NULL, numbered, NULL));
  while (!__atomic_load_n(&number, __ATOMIC_ACQUIRE)) usleep(1000);
  while (!sleeps(number)) usleep(1000);
  return thread;
}

int main(void) {
  void *(*bodies[])(void *) = {reader, receiver};
  for (int i = 0; i < 4; i++) {
    tcp_pair(pair);
    pthread_t thread = in_a_call(bodies[i / 2]);
    if (i % 2) {
      NEED(!shutdown(pair[0], SHUT_RDWR));
    } else {
      NEED(!close(pair[0]));
      NEED(write(pair[1], "still comes", 11) == 11);
    }
    NEED(!pthread_join(thread, NULL));
    close(pair[0]);
    close(pair[1]);
  }
  struct sockaddr_in address;
  listener = listening(&address);
  pthread_t thread = in_a_call(acceptor);
  NEED(!shutdown(listener, SHUT_RDWR));
  NEED(!pthread_join(thread, NULL));
  NEED(!socketpair(AF_UNIX, SOCK_STREAM, 0, full));
  thread = in_a_call(writer);
  NEED(!shutdown(full[0], SHUT_RDWR));
  NEED(!pthread_join(thread, NULL));
}
