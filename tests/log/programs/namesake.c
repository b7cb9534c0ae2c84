/* SPDX-License-Identifier: Apache-2.0 */
/* namesake: a thread called "first" logs 1 and ends, then one called "second", of the same number,
 * logs 2. Only where the kernel lets it say which number is the next. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <tare_log.h>
#include <time.h>
#include <unistd.h>

static tare_log_channel channel;

struct one {
    const char *name;
    int64_t event;
    pid_t number;
};

static void *log_one(void *given) {
    struct one *one = given;
    pthread_setname_np(pthread_self(), one->name);
    one->number = gettid();
    tare_log(channel, one->event);
    return NULL;
}

static int run(struct one *one) {
    pthread_t thread;
    return pthread_create(&thread, NULL, log_one, one) || pthread_join(thread, NULL);
}

int main(void) {
    struct one first = {"first", 1, 0}, second = {"second", 2, 0};
    channel = tare_log_open("short");
    if (run(&first))
        return 1;
    /* The kernel tells threads of one number apart that start in different hundredths. */
    nanosleep(&(struct timespec){0, 50000000}, NULL);
    FILE *last = fopen("/proc/sys/kernel/ns_last_pid", "w");
    if (!last || fprintf(last, "%d", first.number - 1) < 0 || fclose(last))
        return 2;
    return run(&second) || second.number != first.number ? 3 : 0;
}
