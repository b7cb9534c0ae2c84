/* SPDX-License-Identifier: Apache-2.0 */
/* untimed PROGRAM ARGUMENT...: runs a program that may not read the tick counter. */
#include <sys/prctl.h>
#include <unistd.h>

int main(int argc, char **argv) {
    if (argc < 2 || prctl(PR_SET_TSC, PR_TSC_SIGSEGV))
        return 2;
    execv(argv[1], argv + 1);
    return 2;
}
