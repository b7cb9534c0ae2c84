// SPDX-License-Identifier: Apache-2.0
// covers: fdopen, freopen, freopen64
// A stream over a socket becomes one of a file, under the same number.
#include "case.h"

static void reopen(FILE *(*how)(const char *, const char *, FILE *), const char *path) {
  int pair[2];
  char buffer[64] = {0};
  tcp_pair(pair);
  NEED(write(pair[0], "of a socket", 11) == 11);
  settle(pair[1], 11);
  FILE *stream = fdopen(pair[1], "r");
  SHOW(read(pair[1], buffer, 5));
  SHOW(how(path, "r", stream) == stream);
  SHOW(fileno(stream) == pair[1]);
  SHOW(read(pair[1], buffer, sizeof buffer));
  puts(buffer);
  SHOW(recv(pair[1], buffer, sizeof buffer, 0));
  SHOW(how("/absent", "r", stream) == NULL);
  SHOW(read(pair[1], buffer, sizeof buffer));
  arrives(pair[0], POLLIN);
  SHOW(recv(pair[0], buffer, sizeof buffer, 0));
}

int main(void) {
  char path[] = "reopened-XXXXXX";
  int file = mkstemp(path);
  NEED(file >= 0 && write(file, "of a file", 9) == 9);
  reopen(freopen, path);
  reopen(freopen64, path);
  unlink(path);
}
