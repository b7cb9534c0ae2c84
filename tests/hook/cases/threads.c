// SPDX-License-Identifier: Apache-2.0
// covers: read, write
#include "case.h"
#include <stdatomic.h>

static atomic_ulong sum;

static void *writer(void *argument) {
  int fd = *(int *)argument;
  for (unsigned char i = 0; i < 200; i++) NEED(write(fd, &i, 1) == 1);
  NEED(!close(fd));
  return NULL;
}

static void *reader(void *argument) {
  int fd = *(int *)argument;
  unsigned char buffer[16];
  ssize_t length;
  while ((length = read(fd, buffer, sizeof buffer)) > 0)
    for (ssize_t i = 0; i < length; i++) sum += buffer[i];
  NEED(length == 0 && !close(fd));
  return NULL;
}

int main(void) {
  for (int round = 0; round < 20; round++) {
    int pairs[6][2];
    pthread_t threads[6][2];
    for (int i = 0; i < 6; i++) {
      NEED(!socketpair(AF_UNIX, SOCK_STREAM, 0, pairs[i]));
      NEED(!pthread_create(&threads[i][0], NULL, reader, &pairs[i][0]));
      NEED(!pthread_create(&threads[i][1], NULL, writer, &pairs[i][1]));
    }
    for (int i = 0; i < 6; i++)
      for (int end = 0; end < 2; end++) NEED(!pthread_join(threads[i][end], NULL));
  }
  printf("%lu\n", sum);
}
