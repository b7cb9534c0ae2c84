// SPDX-License-Identifier: Apache-2.0
// covers: read, sendfile
#include "case.h"

int main(void) {
  int pair[2], file = memfd_create("file", 0), copy = memfd_create("copy", 0);
  char buffer[64] = {0};
  off_t offset = 2;
  tcp_pair(pair);
  NEED(write(file, "0123456789", 10) == 10);
  SHOW(sendfile(pair[0], file, &offset, 5));
  SHOW(offset);
  SHOW(sendfile(pair[0], file, &offset, 100));
  SHOW(sendfile(pair[0], file, &offset, 100));
  settle(pair[1], 8);
  SHOW(read(pair[1], buffer, sizeof buffer));
  puts(buffer);
  offset = 0;
  SHOW(sendfile(copy, file, &offset, 10));
  SHOW(sendfile(pair[0], pair[1], NULL, 5));
  SHOW(sendfile(pair[0], file, (off_t *)8, 5));
}
