// SPDX-License-Identifier: Apache-2.0
// covers: read, close
// One thread closes or shuts down what another is reading from.
#include "case.h"

static int pair[2];

static void *reader(void *nothing) {
  char buffer[64] = {0};
  (void)nothing;
  SHOW(read(pair[0], buffer, sizeof buffer));
  puts(buffer);
  SHOW(read(pair[0], buffer, sizeof buffer));
  return NULL;
}

int main(void) {
  pthread_t thread;
  for (int shut = 0; shut < 2; shut++) {
    tcp_pair(pair);
    NEED(!pthread_create(&thread, NULL, reader, NULL));
    usleep(30000);
    if (shut) {
      NEED(!shutdown(pair[0], SHUT_RDWR));
    } else {
      NEED(!close(pair[0]));
      NEED(write(pair[1], "still comes", 11) == 11);
    }
    NEED(!pthread_join(thread, NULL));
    close(pair[0]);
    close(pair[1]);
  }
}
