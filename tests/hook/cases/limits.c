// SPDX-License-Identifier: Apache-2.0
// covers: setrlimit, setrlimit64, prlimit, prlimit64, mlockall
// Limits that are set and refused; reading and writing go on.
#include "case.h"
#include <sys/mman.h>
#include <sys/resource.h>

int main(void) {
  struct rlimit limit, before;
  struct rlimit64 limit64, before64;
  char got[16] = {0};
  int pair[2];
  SHOW(getrlimit(RLIMIT_AS, &limit));
  SHOW(setrlimit(RLIMIT_AS, &limit));
  SHOW(setrlimit(-1, &limit));
  SHOW(getrlimit64(RLIMIT_CORE, &limit64));
  limit64.rlim_cur = 0;
  SHOW(setrlimit64(RLIMIT_CORE, &limit64));
  SHOW(prlimit(0, RLIMIT_CORE, NULL, &before));
  printf("%llu\n", (unsigned long long)before.rlim_cur);
  SHOW(prlimit(0, -1, NULL, &before));
  SHOW(prlimit64(0, RLIMIT_CORE, &limit64, &before64));
  SHOW(prlimit64(-1, RLIMIT_CORE, NULL, &before64));
  SHOW(mlockall(0));
  SHOW(mlockall(-1));
  tcp_pair(pair);
  SHOW(write(pair[0], "text", 4));
  SHOW(read(pair[1], got, sizeof got));
  puts(got);
}
