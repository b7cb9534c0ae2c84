/* SPDX-License-Identifier: Apache-2.0 */
/* jumping COUNT: logs all the time, and a time-out jumps out of that COUNT times. Prints how many
 * mappings of the log it has then. */
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <tare_log.h>

static sigjmp_buf back;
static volatile int jumps;

static void jump(int number) {
    (void)number;
    jumps++;
    siglongjmp(back, 1);
}

int main(int argc, char **argv) {
    struct itimerval often = {{0, 500}, {0, 500}}, never = {{0, 0}, {0, 0}};
    int most = argc > 1 ? atoi(argv[1]) : 0, mappings = 0;
    tare_log_channel numbers = tare_log_open("numbers");
    char line[512];
    tare_log(numbers, 0);
    signal(SIGALRM, jump);
    sigsetjmp(back, 1);
    setitimer(ITIMER_REAL, &often, NULL);
    while (jumps < most)
        tare_log(numbers, jumps);
    setitimer(ITIMER_REAL, &never, NULL);
    FILE *maps = fopen("/proc/self/maps", "r");
    while (maps && fgets(line, sizeof line, maps))
        mappings += !!strstr(line, "/memfd:tare-log");
    printf("%d\n", mappings);
}
