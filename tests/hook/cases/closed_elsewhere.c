// SPDX-License-Identifier: Apache-2.0
// covers: read, recv, close, socket
// One thread reads a socket again and again until another closes it; then a file has its number.
#include "case.h"

static volatile int shared = -1, is_over;

static void *reader(void *unused) {
  char buffer[8];
  while (!is_over)
    if (shared >= 0) recv(shared, buffer, sizeof buffer, 0);
  return unused;
}

int main(void) {
  static const char text[] = "occurs in no case";
  pthread_t thread;
  long wrong = 0;
  char buffer[32];
  int file = memfd_create("file", 0);
  NEED(write(file, text, sizeof text) == sizeof text);
  NEED(!pthread_create(&thread, NULL, reader, NULL));
  for (int times = 0; times < 20000; times++) {
    int socket_ = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK, 0), other;
    shared = socket_;
    for (volatile int turns = 0; turns < 200; turns++) continue;
    close(socket_);
    shared = -1;
    other = open("/proc/self/fd/3", O_RDONLY);
    wrong += read(other, buffer, sizeof buffer) != sizeof text;
    close(other);
  }
  is_over = 1;
  NEED(!pthread_join(thread, NULL));
  SHOW(file);
  SHOW(wrong);
}
