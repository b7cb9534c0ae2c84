// SPDX-License-Identifier: Apache-2.0
// covers: recv, fclose, fdopen
// stdio over a socket, then a file under the same number.
#include "case.h"

int main(void) {
  int pair[2];
  char buffer[64] = {0};
  tcp_pair(pair);
  FILE *in = fdopen(pair[1], "r"), *out = fdopen(pair[0], "w");
  SHOW(fprintf(out, "a line\n"));
  SHOW(fflush(out));
  SHOW(fgets(buffer, sizeof buffer, in) != NULL);
  printf("%s", buffer);
  int number = fileno(in);
  SHOW(fclose(in));
  int file = memfd_create("file", 0);
  SHOW(file == number);
  SHOW(write(file, "a file", 6));
  SHOW(lseek(file, 0, SEEK_SET));
  SHOW(read(file, buffer, sizeof buffer));
  SHOW(recv(file, buffer, sizeof buffer, 0));
  SHOW(fclose(out));
  FILE *memory = fmemopen(buffer, sizeof buffer, "w");
  SHOW(fclose(memory));
}
