/* SPDX-License-Identifier: Apache-2.0 */
/* locked COUNT: locks its memory, then logs COUNT events in the main thread and in another one. Exits
 * with 3 if more than 12 MiB more are locked then, and with 4 if it may not lock memory. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <tare_log.h>

static tare_log_channel numbers;
static long count;

static void *log_all(void *unused) {
    for (long number = 0; number < count; number++)
        tare_log(numbers, number);
    return unused;
}

static long locked_kib(void) {
    char line[128];
    long kib = -1;
    FILE *status = fopen("/proc/self/status", "r");
    while (status && fgets(line, sizeof line, status))
        sscanf(line, "VmLck: %ld", &kib);
    return kib;
}

int main(int argc, char **argv) {
    pthread_attr_t small;
    pthread_t thread;
    if (argc != 2)
        return 2;
    count = atol(argv[1]);
    if (mlockall(MCL_CURRENT | MCL_FUTURE))
        return 4;
    long before = locked_kib();
    numbers = tare_log_open("numbers");
    log_all(NULL);
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 1 << 16);
    if (pthread_create(&thread, &small, log_all, NULL) || pthread_join(thread, NULL))
        return 2;
    return before < 0 || locked_kib() - before > 12 << 10 ? 3 : 0;
}
