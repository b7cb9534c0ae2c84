// SPDX-License-Identifier: Apache-2.0
// covers: recvmmsg, sendmsg, dup
// Descriptors that come with the messages of one recvmmsg.
#include "case.h"

union control {
  char bytes[CMSG_SPACE(sizeof(int))];
  struct cmsghdr header;
};

static void pass(int fd, char *text) {
  union control control = {0};
  struct iovec part = {text, strlen(text)};
  struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
  control.header = (struct cmsghdr){CMSG_LEN(sizeof(int)), SOL_SOCKET, SCM_RIGHTS};
  *(int *)CMSG_DATA(&control.header) = fd;
  SHOW(sendmsg(fd, &message, 0));
}

int main(void) {
  int pair[2];
  char buffers[3][16] = {{0}};
  union control controls[3];
  struct iovec parts[3];
  struct mmsghdr messages[3] = {0};
  NEED(!socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
  pass(pair[0], "fine");
  pass(pair[0], "attack");
  pass(pair[0], "more");
  for (int i = 0; i < 3; i++) {
    parts[i] = (struct iovec){buffers[i], sizeof buffers[i]};
    messages[i].msg_hdr = (struct msghdr){.msg_iov = &parts[i], .msg_iovlen = 1, .msg_control = &controls[i], .msg_controllen = sizeof controls[i]};
  }
  SHOW(recvmmsg(pair[1], messages, 3, MSG_DONTWAIT, NULL));
  // The lowest number that is free.
  SHOW(dup(pair[1]) - pair[1]);
}
