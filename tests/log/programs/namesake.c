/* SPDX-License-Identifier: Apache-2.0 */
/* namesake: a thread called "first" logs 1 and ends, then one called "second", of the same number,
 * logs 2. Only where the kernel lets it say which number is the next. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <tare_log.h>
#include <time.h>
#include <unistd.h>

enum { TAKEN = 4 };
static tare_log_channel channel;

struct namesake {
    const char *name;
    int64_t event;
    pid_t wanted; /* 0: any */
    pid_t number;
};

static void *log_event(void *given) {
    struct namesake *thread = given;
    thread->number = gettid();
    if (thread->wanted && thread->number != thread->wanted)
        return NULL;
    pthread_setname_np(pthread_self(), thread->name);
    tare_log(channel, thread->event);
    return NULL;
}

static int run(struct namesake *namesake) {
    pthread_t thread;
    return pthread_create(&thread, NULL, log_event, namesake) || pthread_join(thread, NULL);
}

/* Starts a second thread of the number of a first one that has ended: 0, or why it did not. */
static int run_both(void) {
    struct namesake first = {"first", 1, 0, 0};
    if (run(&first))
        return 1;
    /* The kernel tells threads of one number apart that start in different hundredths. */
    nanosleep(&(struct timespec){0, 50000000}, NULL);
    struct namesake second = {"second", 2, first.number, 0};
    for (int attempt = 0; attempt < 100 && second.number != second.wanted; attempt++) {
        FILE *last = fopen("/proc/sys/kernel/ns_last_pid", "w");
        if (!last || fprintf(last, "%d", first.number - 1) < 0 || fclose(last))
            return 2;
        if (run(&second))
            return 3;
    }
    return second.number != second.wanted ? TAKEN : 0;
}

int main(void) {
    channel = tare_log_open("short");
    int failed = TAKEN;
    /* A thread of the collector may have taken the number, and keep it. */
    for (int attempt = 0; attempt < 10 && failed == TAKEN; attempt++)
        failed = run_both();
    return failed;
}
