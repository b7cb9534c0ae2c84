// SPDX-License-Identifier: Apache-2.0
// covers: __read, preadv64v2, __write, pwritev64v2, __send, sendfile64, __connect, __close, __dup2,
// covers: __fcntl, fcntl64, __vfork
// The other names that glibc has for the same functions.
#include "case.h"

ssize_t __read(int, void *, size_t);
ssize_t __write(int, const void *, size_t);
#ifdef __x86_64__
ssize_t __send(int, const void *, size_t, int);
#else
#define __send send  // Only x86-64's glibc exports it.
#endif
int __connect(int, const struct sockaddr *, socklen_t);
int __close(int);
int __dup2(int, int);
int __fcntl(int, int, ...);
pid_t __vfork(void);

int main(void) {
  struct sockaddr_in address;
  char buffer[64] = {0};
  struct iovec in = {buffer, 5}, out = {"vector", 6};
  int listener = listening(&address), status;
  int client = socket(AF_INET, SOCK_STREAM, 0);
  SHOW(__connect(client, (struct sockaddr *)&address, sizeof address));
  SHOW(__connect(client, (struct sockaddr *)&address, sizeof address));
  int accepted = accept(listener, NULL, NULL);
  SHOW(__write(client, "written", 7));
  SHOW(__send(client, "sent", 4, MSG_NOSIGNAL));
  settle(accepted, 11);
  SHOW(__read(accepted, buffer, sizeof buffer));
  puts(buffer);
  SHOW(pwritev64v2(accepted, &out, 1, -1, 0));
  SHOW(pwritev64v2(accepted, &out, 1, 7, 0));
  settle(client, 6);
  SHOW(preadv64v2(client, &in, 1, -1, 0));
  SHOW(preadv64v2(client, &in, 1, 7, 0));
  printf("%.5s\n", buffer);
  SHOW(__dup2(accepted, 70));
  SHOW(__fcntl(70, F_DUPFD, 80));
  SHOW(fcntl64(80, F_DUPFD_CLOEXEC, 90));
  SHOW(fcntl64(90, F_GETFD));
  SHOW(__close(70));
  SHOW(__close(70));
  SHOW(__read(70, buffer, 1));
  int file = memfd_create("file", 0);
  SHOW(__write(file, "of a file", 9));
  off64_t offset = 3;
  SHOW(sendfile64(90, file, &offset, 99));
  SHOW(offset);
  settle(client, 6);
  SHOW(__read(client, buffer, sizeof buffer));
  SHOW(__vfork() == 0 ? (_exit(5), 0) : 1);
  SHOW(wait(&status) > 0);
  SHOW(WEXITSTATUS(status));
}
