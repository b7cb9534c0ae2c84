// SPDX-License-Identifier: Apache-2.0
// covers: sendmmsg
// Each argument is a call of sendmmsg, its messages divided by bars.
#include "case.h"

static void transmit(int fd, const char *texts) {
  char *copy = strdup(texts);
  struct iovec parts[8];
  struct mmsghdr messages[8] = {0};
  int count = 0;
  for (char *text = strtok(copy, "|"); text; text = strtok(NULL, "|"), count++) {
    parts[count] = (struct iovec){text, strlen(text)};
    messages[count].msg_hdr = (struct msghdr){.msg_iov = &parts[count], .msg_iovlen = 1};
  }
  SHOW(sendmmsg(fd, messages, count, 0));
}

int main(int count, char **texts) {
  int pair[2];
  char received[64] = "";
  if (count > 1 && !strcmp(texts[1], "datagrams")) {
    NEED(!socketpair(AF_UNIX, SOCK_DGRAM, 0, pair));
    texts++, count--;
  } else {
    tcp_pair(pair);
  }
  if (count == 1) transmit(pair[0], "one|two|three");
  for (int i = 1; i < count; i++) transmit(pair[0], texts[i]);
  close(pair[0]);
  for (char *end = received; recv(pair[1], end, 20, MSG_DONTWAIT) > 0;) end += strlen(end);
  puts(received);
}
