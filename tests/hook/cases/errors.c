// SPDX-License-Identifier: Apache-2.0
// covers: read, readv, preadv2, recv, recvfrom, recvmsg, recvmmsg, write, writev, send, sendto,
// covers: sendmsg, sendmmsg, sendfile, accept, connect, socket, socketpair, close
#include "case.h"

int main(void) {
  char buffer[8];
  struct iovec vector = {buffer, sizeof buffer};
  struct msghdr message = {.msg_iov = &vector, .msg_iovlen = 1};
  int file = memfd_create("file", 0), descriptors[] = {-1, 999, file, INT_MIN, INT_MAX};
  for (int i = 0; i < 5; i++) {
    int fd = descriptors[i];
    SHOW(recv(fd, buffer, 8, 0));
    SHOW(recvfrom(fd, buffer, 8, 0, NULL, NULL));
    SHOW(recvmsg(fd, &message, 0));
    SHOW(recvmmsg(fd, NULL, 0, 0, NULL));
    SHOW(send(fd, buffer, 8, 0));
    SHOW(sendto(fd, buffer, 8, 0, NULL, 0));
    SHOW(sendmsg(fd, &message, 0));
    SHOW(sendmmsg(fd, NULL, 0, 0));
    SHOW(accept(fd, NULL, NULL));
    SHOW(accept4(fd, NULL, NULL, 0));
    SHOW(connect(fd, NULL, 0));
  }
  for (int i = 0; i < 2; i++) {
    int fd = descriptors[i];
    SHOW(read(fd, buffer, 8));
    SHOW(readv(fd, &vector, 1));
    SHOW(write(fd, buffer, 8));
    SHOW(writev(fd, &vector, 1));
    SHOW(preadv2(fd, &vector, 1, -1, 0));
    SHOW(sendfile(fd, file, NULL, 8));
    SHOW(close(fd));
    SHOW(fcntl(fd, F_GETFL));
    SHOW(fdopen(fd, "r") == NULL);
  }
  int pair[2];
  tcp_pair(pair);
  SHOW(write(pair[1], "x", 1));
  SHOW(read(pair[0], (void *)8, 8));
  SHOW(write(pair[1], (void *)8, 8));
  SHOW(send(pair[1], NULL, 8, 0));
  SHOW(sendmsg(pair[1], NULL, 0));
  SHOW(sendmsg(pair[1], (struct msghdr *)8, 0));
  SHOW(recvmsg(pair[0], NULL, 0));
  message.msg_iov = NULL;
  SHOW(sendmsg(pair[1], &message, 0));
  SHOW(connect(pair[1], (struct sockaddr *)8, 16));
  SHOW(accept(pair[1], NULL, NULL));
  // A buffer that ends before it should: as much as there is goes.
  char *page = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  NEED(page != MAP_FAILED && !mprotect(page + 4096, 4096, PROT_NONE));
  int unix_pair[2];
  NEED(!socketpair(AF_UNIX, SOCK_STREAM, 0, unix_pair));
  SHOW(write(unix_pair[0], page + 4000, 200));
  SHOW(write(pair[1], page + 4000, 200));
  SHOW(socket(-1, SOCK_STREAM, 0));
  SHOW(socketpair(AF_INET, SOCK_STREAM, 0, unix_pair));
}
