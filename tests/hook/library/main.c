// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

extern int early[2];

int main(void) {
  char buffer[32] = {0};
  long length = read(early[1], buffer, sizeof buffer);
  printf("main: %ld %s\n", length, buffer);
  return length != 11;
}
