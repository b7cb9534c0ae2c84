/* SPDX-License-Identifier: Apache-2.0 */
/* Returns once a thread waits in a system call. */
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static void until_it_waits(pid_t process, long thread) {
    char path[64], line[256];
    snprintf(path, sizeof path, "/proc/%d/task/%ld/stat", process, thread);
    for (;;) {
        FILE *stat = fopen(path, "r");
        if (!stat || !fgets(line, sizeof line, stat))
            _exit(2);
        fclose(stat);
        if (strrchr(line, ')')[2] == 'S')
            return;
        sched_yield();
    }
}
