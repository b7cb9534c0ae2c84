// SPDX-License-Identifier: Apache-2.0
// covers: prctl
// What can be asked of prctl, and filters that the kernel refuses.
#include "case.h"
#include <linux/seccomp.h>
#include <sys/prctl.h>

int main(void) {
  char name[16] = "a name", got[16] = {0};
  int pair[2];
  SHOW(prctl(PR_SET_NAME, name));
  SHOW(prctl(PR_GET_NAME, got));
  puts(got);
  SHOW(prctl(PR_SET_NO_NEW_PRIVS, 1, 1, 0, 0));
  SHOW(prctl(PR_GET_SECCOMP));
  SHOW(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, NULL));
  SHOW(syscall(SYS_seccomp, SECCOMP_SET_MODE_STRICT, 1, NULL));
  SHOW(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, NULL));
  SHOW(prctl(-1));
  // The refused filters have left everything as it was.
  tcp_pair(pair);
  SHOW(write(pair[0], "text", 4));
  SHOW(read(pair[1], got, sizeof got));
}
