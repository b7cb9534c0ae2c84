/* SPDX-License-Identifier: Apache-2.0 */
/* threads ticks|tare COUNT: as calls, with COUNT threads, each on a CPU of its own, that log N
 * events each; prints the nanoseconds that the slowest took. */
#define _GNU_SOURCE
#include "timed_loop.h"
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <tare_log.h>

static pthread_barrier_t begin, end;
static long wanted;
static int64_t took[64];
static tare_log_channel channel;

static void *logs(void *argument) {
    long number = (long)argument;
    cpu_set_t cpus;
    CPU_ZERO(&cpus);
    CPU_SET(number, &cpus);
    if (pthread_setaffinity_np(pthread_self(), sizeof cpus, &cpus))
        abort();
    for (int64_t next = 0;;) {
        pthread_barrier_wait(&begin);
        int64_t since = now();
        if (channel)
            for (long event = 0; event < wanted; event++)
                tare_log(channel, next++);
        else
            for (long event = 0; event < wanted; event++)
                __atomic_store_n(&next, (int64_t)tare_log_ticks(), __ATOMIC_RELAXED);
        took[number] = now() - since;
        pthread_barrier_wait(&end);
    }
    return NULL;
}

int main(int argc, char **argv) {
    long count = argc > 2 ? atol(argv[2]) : 1;
    if (count < 1 || count > 64)
        return 2;
    channel = strcmp(argv[1], "ticks") ? tare_log_open("calls") : 0;
    pthread_barrier_init(&begin, NULL, count + 1);
    pthread_barrier_init(&end, NULL, count + 1);
    for (long number = 0; number < count; number++) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, logs, (void *)number))
            return 1;
    }
    while (scanf("%ld", &wanted) == 1) {
        pthread_barrier_wait(&begin);
        pthread_barrier_wait(&end);
        int64_t most = 0;
        for (long number = 0; number < count; number++)
            if (took[number] > most)
                most = took[number];
        printf("%lld\n", (long long)most);
        fflush(stdout);
    }
}
