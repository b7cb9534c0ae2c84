/* SPDX-License-Identifier: Apache-2.0 */
/* named COUNT: threads named worker-0 and worker-1 log 0, 1 ... COUNT - 1 on channels "left" and
 * "right" each time a line comes on the input, and print a line when they have. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <tare_log.h>

enum { THREADS = 2 };
static tare_log_channel left, right;
static long count;
static pthread_barrier_t begin, end;

static void *work(void *number) {
    char name[16];
    snprintf(name, sizeof name, "worker-%ld", (long)number);
    pthread_setname_np(pthread_self(), name);
    for (;;) {
        pthread_barrier_wait(&begin);
        for (long event = 0; event < count; event++) {
            tare_log(left, event);
            tare_log(right, event);
        }
        pthread_barrier_wait(&end);
    }
    return NULL;
}

int main(int argc, char **argv) {
    count = argc > 1 ? atol(argv[1]) : 0;
    left = tare_log_open("left");
    right = tare_log_open("right");
    pthread_barrier_init(&begin, NULL, THREADS + 1);
    pthread_barrier_init(&end, NULL, THREADS + 1);
    pthread_t started;
    for (long number = 0; number < THREADS; number++)
        if (pthread_create(&started, NULL, work, (void *)number))
            return 1;
    while (getchar() != EOF) {
        pthread_barrier_wait(&begin);
        pthread_barrier_wait(&end);
        puts("done");
        fflush(stdout);
    }
}
