// SPDX-License-Identifier: Apache-2.0
// A library whose constructor runs before the hook's, and uses what the hook stands in front of.
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

int early[2];

__attribute__((constructor)) static void begin(void) {
  char buffer[32] = {0};
  if (socketpair(AF_UNIX, SOCK_STREAM, 0, early)) return;
  if (write(early[0], "before main, and after", 22) != 22) return;
  if (recv(early[1], buffer, 11, 0) != 11) return;
  printf("constructor: %s\n", buffer);
  fflush(stdout);
}
