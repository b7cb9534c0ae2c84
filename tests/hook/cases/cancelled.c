// SPDX-License-Identifier: Apache-2.0
// covers: read, write, accept
// Every cancellation point that is forwarded stays one.
#include "case.h"

static int pair[2];
static struct sockaddr_in address;
static int listener;

static void note(void *name) { printf("cleanup of %s\n", (char *)name); }

static void *in_read(void *name) {
  char buffer[64];
  pthread_cleanup_push(note, name);
  while (read(pair[0], buffer, sizeof buffer)) continue;
  pthread_cleanup_pop(0);
  return NULL;
}

static void *in_recvmsg(void *name) {
  char buffer[64];
  struct iovec vector = {buffer, sizeof buffer};
  struct msghdr message = {.msg_iov = &vector, .msg_iovlen = 1};
  pthread_cleanup_push(note, name);
  while (recvmsg(pair[0], &message, 0)) continue;
  pthread_cleanup_pop(0);
  return NULL;
}

static void *in_accept(void *name) {
  pthread_cleanup_push(note, name);
  while (accept(listener, NULL, NULL)) continue;
  pthread_cleanup_pop(0);
  return NULL;
}

static void *in_write(void *name) {
  static char buffer[1 << 20];
  pthread_cleanup_push(note, name);
  while (write(pair[0], buffer, sizeof buffer)) continue;
  pthread_cleanup_pop(0);
  return NULL;
}

int main(void) {
  void *(*bodies[])(void *) = {in_read, in_recvmsg, in_accept, in_write};
  char *names[] = {"read", "recvmsg", "accept", "write"};
  listener = listening(&address);
  tcp_pair(pair);
  for (int i = 0; i < 4; i++) {
    pthread_t thread;
    void *result;
    NEED(!pthread_create(&thread, NULL, bodies[i], names[i]));
    usleep(50000);
    NEED(!pthread_cancel(thread));
    SHOW(pthread_join(thread, &result));
    SHOW(result == PTHREAD_CANCELED);
  }
  char buffer[8];
  SHOW(write(pair[1], "after", 5));
  SHOW(read(pair[0], buffer, sizeof buffer));
}
