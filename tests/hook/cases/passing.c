// SPDX-License-Identifier: Apache-2.0
// covers: read, recvmsg, write, sendmsg, close
// Descriptors that travel in a control message, over sockets and to numbers that were others'.
#include "case.h"

static void pass(int over, int fd, const char *text) {
  char control[CMSG_SPACE(sizeof fd)] = {0};
  struct iovec vector = {(void *)text, strlen(text)};
  struct msghdr message = {.msg_iov = &vector, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
  struct cmsghdr *header = CMSG_FIRSTHDR(&message);
  *header = (struct cmsghdr){.cmsg_len = CMSG_LEN(sizeof fd), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS};
  memcpy(CMSG_DATA(header), &fd, sizeof fd);
  SHOW(sendmsg(over, &message, 0));
}

static int take(int over, size_t room) {
  char buffer[64] = {0}, control[CMSG_SPACE(sizeof(int))] = {0};
  struct iovec vector = {buffer, sizeof buffer};
  struct msghdr message = {.msg_iov = &vector, .msg_iovlen = 1, .msg_control = control, .msg_controllen = room};
  int fd = -1;
  SHOW(recvmsg(over, &message, 0));
  struct cmsghdr *header = CMSG_FIRSTHDR(&message);
  if (header) memcpy(&fd, CMSG_DATA(header), sizeof fd);
  printf("%s, flags %x, control %zu\n", buffer, message.msg_flags, message.msg_controllen);
  return fd;
}

int main(void) {
  int pair[2], inner[2];
  char buffer[64] = {0};
  NEED(!socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
  tcp_pair(inner);
  pass(pair[0], inner[1], "an end of a connection");
  close(inner[1]);
  int end = take(pair[1], CMSG_SPACE(sizeof(int)));
  SHOW(write(inner[0], "through the passed end", 22));
  SHOW(read(end, buffer, sizeof buffer));
  puts(buffer);
  close(end);
  int file = memfd_create("file", 0);
  SHOW(write(file, "of a file", 9));
  SHOW(lseek(file, 0, SEEK_SET));
  pass(pair[0], file, "a file");
  int same = take(pair[1], CMSG_SPACE(sizeof(int)));
  SHOW(same == end);
  SHOW(read(same, buffer, sizeof buffer));
  pass(pair[0], file, "no room");
  SHOW(take(pair[1], 0));
}
