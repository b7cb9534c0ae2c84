/* SPDX-License-Identifier: Apache-2.0 */
/* idle COUNT: COUNT threads log an event each and keep their rings; then it answers a line and
 * does nothing until its input ends. */
#include "timed_loop.h"
#include <pthread.h>
#include <stdlib.h>
#include <tare_log.h>
#include <unistd.h>

static pthread_barrier_t logged;
static tare_log_channel channel;

static void *logs(void *unused) {
    (void)unused;
    tare_log(channel, 1);
    pthread_barrier_wait(&logged);
    for (;;)
        pause();
}

int main(int argc, char **argv) {
    long count = argc > 1 ? atol(argv[1]) : 0;
    channel = tare_log_open("idle");
    pthread_barrier_init(&logged, NULL, count + 1);
    for (long number = 0; number < count; number++) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, logs, NULL))
            return 1;
    }
    pthread_barrier_wait(&logged);
    while (scanf("%ld", &count) == 1) {
        puts("0");
        fflush(stdout);
    }
}
