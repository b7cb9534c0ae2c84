// SPDX-License-Identifier: Apache-2.0
// A preload library that logs how many bytes each call received from a socket.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <sys/socket.h>
#include <tare_log.h>
#include <unistd.h>

#define NEXT(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

static tare_log_channel received;

__attribute__((constructor)) static void begin(void) { received = tare_log_open("received"); }

static ssize_t logged(int fd, ssize_t bytes) {
  int type, saved = errno;
  socklen_t length = sizeof type;
  if (bytes > 0 && getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &length) == 0)
    tare_log(received, bytes);
  errno = saved;
  return bytes;
}

ssize_t read(int fd, void *buffer, size_t length) {
  return logged(fd, NEXT(read)(fd, buffer, length));
}

ssize_t recv(int fd, void *buffer, size_t length, int flags) {
  return logged(fd, NEXT(recv)(fd, buffer, length, flags));
}
