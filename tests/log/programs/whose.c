/* SPDX-License-Identifier: Apache-2.0 */
/* whose WHAT: logs from threads with names of their own; says "full" where the ring of one has no
 * more room, and then waits for a line.
 *   turns: threads in turn log 10 and 30,000 times their number, and lose the oldest
 *   ended: "first" logs 5000 events and ends, then, behind the line, "second" 10
 *   closed: main closes a channel whose last event is that of "first" when its ring has room for
 *     that event, but not for it and whose it is; then, behind the line, it logs 10
 *   crowd: twenty children, in each of which four threads log 1000 events at once
 *   cornered: main and a signal handler log, when there is no ring any more; prints how many
 *   many: 1030 threads log one event and five that are discarded */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <tare_log.h>
#include <unistd.h>

enum { MANY = 1030 };
static tare_log_channel channel, other;
static pthread_barrier_t together;

struct named_thread {
    const char *name;
    long events;
};

static void *log_its_number(void *given) {
    int64_t number = gettid();
    for (long event = 0; event < ((struct named_thread *)given)->events; event++)
        tare_log(channel, number);
    return NULL;
}

static void *log_named(void *given) {
    pthread_setname_np(pthread_self(), ((struct named_thread *)given)->name);
    for (long event = 0; event < ((struct named_thread *)given)->events; event++)
        tare_log(channel, event);
    return NULL;
}

static void run(void *(*what)(void *), struct named_thread thread_settings) {
    pthread_t thread;
    pthread_create(&thread, NULL, what, &thread_settings);
    pthread_join(thread, NULL);
}

static void wait_for_a_line(void) {
    puts("full");
    fflush(stdout);
    getchar();
}

static void *log_together(void *given) {
    pthread_barrier_wait(&together);
    return log_named(given);
}

static void crowd(void) {
    struct named_thread member = {"crowd", 1000};
    for (int child = 0; child < 20; child++) {
        if (fork()) {
            wait(NULL);
            continue;
        }
        pthread_t threads[4];
        pthread_barrier_init(&together, NULL, 4);
        for (int place = 0; place < 4; place++)
            pthread_create(&threads[place], NULL, log_together, &member);
        for (int place = 0; place < 4; place++)
            pthread_join(threads[place], NULL);
        _exit(0);
    }
}

static volatile int64_t handled;

static void handle(int number) {
    (void)number;
    handled++;
    tare_log(channel, 0);
}

static void cornered(void) {
    int64_t events = 0;
    tare_log(channel, ++events);
    close_range(3, ~0u, 0);
    signal(SIGALRM, handle);
    struct itimerval often = {{0, 2000}, {0, 2000}}, never = {{0, 0}, {0, 0}};
    setitimer(ITIMER_REAL, &often, NULL);
    while (handled < 30)
        tare_log(channel, ++events);
    setitimer(ITIMER_REAL, &never, NULL);
    printf("%ld\n", (long)(events + handled));
}

static void *log_once(void *nothing) {
    tare_log(channel, 1);
    for (int event = 0; event < 5; event++)
        tare_log(other, 1);
    pthread_barrier_wait(&together);
    return nothing;
}

static void many(void) {
    pthread_t threads[MANY];
    pthread_attr_t small;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 1 << 16);
    pthread_barrier_init(&together, NULL, MANY);
    for (int place = 0; place < MANY; place++)
        pthread_create(&threads[place], &small, log_once, NULL);
    for (int place = 0; place < MANY; place++)
        pthread_join(threads[place], NULL);
}

int main(int argc, char **argv) {
    const char *what = argc > 1 ? argv[1] : "";
    struct tare_log_options options = {.policy = TARE_LOG_WAIT};
    if (!strcmp(what, "turns"))
        options.policy = TARE_LOG_OVERWRITE;
    else if (strcmp(what, "crowd"))
        options.policy = TARE_LOG_DROP;
    channel = tare_log_open_with("events", &options);
    options.handler = strcmp(what, "closed") ? TARE_LOG_NULL : TARE_LOG_FIRST_LAST;
    other = tare_log_open_with("other", &options);
    if (!strcmp(what, "turns")) {
        for (int turn = 0; turn < 40; turn++)
            run(log_its_number, (struct named_thread){"", turn % 2 ? 30000 : 10});
    } else if (!strcmp(what, "ended")) {
        run(log_named, (struct named_thread){"first", 5000});
        wait_for_a_line();
        run(log_named, (struct named_thread){"second", 10});
    } else if (!strcmp(what, "closed")) {
        tare_log(other, 1);
        tare_log_channel mine = channel;
        channel = other;
        run(log_named, (struct named_thread){"first", 1});
        channel = mine;
        /* Of the 8192 words of the ring ten are left. */
        for (int event = 0; event < 4087; event++)
            tare_log(channel, event);
        tare_log_close(other);
        wait_for_a_line();
        for (int event = 0; event < 10; event++)
            tare_log(channel, 10000 + event);
    } else if (!strcmp(what, "crowd")) {
        crowd();
    } else if (!strcmp(what, "cornered")) {
        cornered();
    } else {
        many();
    }
}
