// SPDX-License-Identifier: Apache-2.0
// covers: read, recv, write, close, dup, dup2, dup3, fcntl
#include "case.h"

int main(void) {
  int pair[2];
  char buffer[64] = {0};
  tcp_pair(pair);
  int copy = dup(pair[1]);
  SHOW(dup2(pair[1], 50));
  SHOW(dup2(pair[1], pair[1]) == pair[1]);
  SHOW(dup3(pair[1], 51, O_CLOEXEC));
  SHOW(dup3(pair[1], pair[1], 0));
  SHOW(fcntl(pair[1], F_DUPFD, 60));
  SHOW(fcntl(pair[1], F_DUPFD_CLOEXEC, 60));
  SHOW(fcntl(60, F_GETFD));
  SHOW(fcntl(61, F_GETFD));
  SHOW(dup(-1));
  SHOW(dup2(-1, 5));
  SHOW(dup2(pair[1], -1));
  SHOW(dup2(pair[1], 1 << 30));
  for (int i = 0; i < 5; i++) NEED(write(pair[0], "abcd", 4) == 4);
  settle(pair[1], 20);
  SHOW(read(copy, buffer, 4));
  SHOW(close(pair[1]));
  SHOW(read(50, buffer, 4));
  SHOW(read(51, buffer, 4));
  SHOW(read(60, buffer, 4));
  SHOW(read(61, buffer, 4));
  int file = memfd_create("file", 0);
  SHOW(write(file, "in the file", 11));
  SHOW(dup2(file, 50));
  SHOW(lseek(50, 0, SEEK_SET));
  SHOW(read(50, buffer, sizeof buffer));
  SHOW(dup2(60, 50));
  SHOW(recv(50, buffer, sizeof buffer, MSG_DONTWAIT));
  SHOW(recv(file, buffer, sizeof buffer, 0));
}
