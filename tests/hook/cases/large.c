// SPDX-License-Identifier: Apache-2.0
// covers: write, writev, send, sendto, sendmsg
// More bytes than a socket that does not block has room for: the rest comes with later calls.
#include "case.h"

#define SIZE (64 << 20)
#define PATTERN (1 << 20)
#define BUFFERS 20

typedef ssize_t sending(int fd, char *bytes, size_t length);

static ssize_t by_write(int fd, char *bytes, size_t length) {
  return write(fd, bytes, length);
}

static ssize_t by_send(int fd, char *bytes, size_t length) {
  return send(fd, bytes, length, MSG_NOSIGNAL);
}

static ssize_t by_sendto(int fd, char *bytes, size_t length) {
  return sendto(fd, bytes, length, MSG_DONTWAIT, NULL, 0);
}

static void divide(struct iovec buffers[BUFFERS], char *bytes, size_t length) {
  for (int number = 0; number < BUFFERS; number++) {
    size_t part = number == BUFFERS - 1 ? length : number % 3 ? length / 7 : 0;
    buffers[number] = (struct iovec){bytes, part};
    bytes += part;
    length -= part;
  }
}

static ssize_t by_writev(int fd, char *bytes, size_t length) {
  struct iovec buffers[BUFFERS];
  divide(buffers, bytes, length);
  return writev(fd, buffers, BUFFERS);
}

static ssize_t by_sendmsg(int fd, char *bytes, size_t length) {
  struct iovec buffers[BUFFERS];
  divide(buffers, bytes, length);
  return sendmsg(fd, &(struct msghdr){.msg_iov = buffers, .msg_iovlen = BUFFERS}, 0);
}

// What the call takes, and whether no more of the memory was looked at: pages that nobody has
// looked at are not allocated.
static void once(sending *call) {
  int pair[2], file = memfd_create("bytes", 0);
  struct stat status;
  NEED(!ftruncate(file, SIZE));
  char *bytes = mmap(NULL, SIZE, PROT_READ, MAP_SHARED, file, 0);
  NEED(bytes != MAP_FAILED);
  NEED(!socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair));
  errno = UNTOUCHED;
  ssize_t sent = call(pair[0], bytes, SIZE);
  printf("errno %d\n", errno);
  SHOW(sent > 1 << 16 && sent < SIZE);
  NEED(!fstat(file, &status));
  SHOW(status.st_blocks * 512 - sent < 1 << 20);
  SHOW(call(pair[0], bytes, SIZE));
  close(pair[1]);
  signal(SIGPIPE, SIG_IGN);
  SHOW(call(pair[0], bytes, SIZE));
  munmap(bytes, SIZE);
  close(file);
  close(pair[0]);
}

static void all(sending *call) {
  int pair[2];
  char *bytes = malloc(PATTERN), *got = malloc(PATTERN);
  for (int place = 0; place < PATTERN; place++) bytes[place] = "\1\2\3\4\5\6\7"[(place / 5) % 7];
  tcp_pair(pair);
  NEED(!fcntl(pair[0], F_SETFL, O_NONBLOCK));
  for (size_t sent = 0, come = 0; come < PATTERN;) {
    ssize_t now = sent < PATTERN ? call(pair[0], bytes + sent, PATTERN - sent) : 0;
    if (now > 0) sent += now;
    NEED(now >= 0 || errno == EAGAIN);
    now = recv(pair[1], got + come, PATTERN - come, MSG_DONTWAIT);
    if (now > 0) come += now;
  }
  SHOW(memcmp(bytes, got, PATTERN));
  free(bytes);
  free(got);
}

int main(void) {
  sending *calls[] = {by_write, by_send, by_sendto, by_writev, by_sendmsg};
  for (int number = 0; number < 5; number++) {
    once(calls[number]);
    all(calls[number]);
  }
}
