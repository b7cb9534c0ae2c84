// SPDX-License-Identifier: Apache-2.0
// covers: readv, preadv2, write, writev, pwritev2
#include "case.h"

int main(void) {
  int pair[2];
  char a[4] = {0}, b[64] = {0};
  struct iovec in[3] = {{a, 3}, {NULL, 0}, {b, 40}};
  struct iovec out[2] = {{"head", 4}, {"-and-tail", 9}};
  tcp_pair(pair);
  SHOW(writev(pair[0], out, 2));
  settle(pair[1], 13);
  SHOW(readv(pair[1], in, 3));
  printf("%s|%s\n", a, b);
  SHOW(pwritev2(pair[0], out, 2, -1, 0));
  settle(pair[1], 13);
  SHOW(preadv2(pair[1], in, 3, -1, 0));
  SHOW(preadv2(pair[1], in, 3, 0, 0));
  SHOW(pwritev2(pair[0], out, 2, 5, 0));
  SHOW(readv(pair[1], in, -1));
  SHOW(readv(pair[1], in, IOV_MAX + 1));
  SHOW(writev(pair[0], out, 0));
  SHOW(writev(pair[0], (struct iovec *)8, 2));
  out[1].iov_base = (void *)8;
  SHOW(writev(pair[0], out + 1, 1));
  in[0].iov_base = (void *)8;
  SHOW(write(pair[0], "unread", 6));
  SHOW(readv(pair[1], in, 1));
  SHOW(readv(pair[1], in + 2, 1));

  int file = memfd_create("file", 0);
  in[0].iov_base = a;
  out[1].iov_base = "-and-tail";
  SHOW(pwritev2(file, out, 2, 0, 0));
  SHOW(preadv2(file, in, 3, 2, 0));
  printf("%s|%.10s\n", a, b);
  SHOW(preadv2(file, in, 3, -1, 0));
  SHOW(preadv2(file, in, 3, -1, 0));
  SHOW(preadv2(file, in, 3, -2, 0));
}
