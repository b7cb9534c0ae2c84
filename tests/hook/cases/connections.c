// SPDX-License-Identifier: Apache-2.0
// covers: read, write, accept, accept4, connect, socket, close
#include "case.h"

int main(void) {
  struct sockaddr_in address, peer;
  struct sockaddr nowhere = {.sa_family = AF_UNSPEC};
  socklen_t length = sizeof peer;
  char buffer[64] = {0};
  int listener = listening(&address), state;
  int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
  SHOW(connect(fd, (struct sockaddr *)&address, sizeof address));
  int other = accept4(listener, (struct sockaddr *)&peer, &length, SOCK_NONBLOCK | SOCK_CLOEXEC);
  SHOW(length);
  SHOW(fcntl(other, F_GETFL) & O_NONBLOCK);
  SHOW(poll(&(struct pollfd){.fd = fd, .events = POLLOUT}, 1, 1000));
  SHOW(connect(fd, (struct sockaddr *)&address, sizeof address));
  SHOW(connect(fd, (struct sockaddr *)&address, sizeof address));
  SHOW(write(fd, "first", 5));
  settle(other, 5);
  SHOW(read(other, buffer, sizeof buffer));
  SHOW(connect(fd, &nowhere, sizeof nowhere));
  SHOW(read(fd, buffer, sizeof buffer));
  arrives(other, 0);
  SHOW(read(other, buffer, sizeof buffer));
  SHOW(fcntl(fd, F_SETFL, 0));
  SHOW(connect(fd, (struct sockaddr *)&address, sizeof address));
  int third = accept(listener, NULL, NULL);
  SHOW(write(fd, "second", 6));
  settle(third, 6);
  SHOW(read(third, buffer, sizeof buffer));
  SHOW(close(listener));
  SHOW(accept(listener, NULL, NULL));
  SHOW(connect(socket(AF_INET, SOCK_STREAM, 0), (struct sockaddr *)&address, sizeof address));
  length = sizeof state;
  SHOW(getsockopt(fd, SOL_SOCKET, SO_ERROR, &state, &length));
  SHOW(state);
  on_signal(SIGPIPE, SIG_IGN, 0);
  SHOW(close(third));
  arrives(fd, POLLRDHUP);
  SHOW(write(fd, "into the void", 13));
  arrives(fd, 0);
  SHOW(write(fd, "into the void", 13));
  SHOW(read(fd, buffer, sizeof buffer));
}
