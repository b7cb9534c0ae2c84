/* SPDX-License-Identifier: Apache-2.0 */
/* hanging jump: a time-out jumps out of the first call while the collector hangs; then the thread
 * and another one log. hanging priorities: a thread waits for one of a lower priority that makes
 * the memory, both on one processor; 4 if this user may not set priorities. */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/time.h>
#include <tare_log.h>
#include <unistd.h>

static sigjmp_buf back;
static int has_begun[2];

static void jump(int number) {
    (void)number;
    siglongjmp(back, 1);
}

static void *log_once(void *name) {
    tare_log(tare_log_open(name), 1);
    return NULL;
}

static int jump_out(void) {
    struct itimerval soon = {.it_value.tv_usec = 100000};
    pthread_t thread;
    signal(SIGALRM, jump);
    if (!sigsetjmp(back, 1)) {
        setitimer(ITIMER_REAL, &soon, NULL);
        tare_log_open("left");
        /* Not left: the collector has answered. */
        pause();
    }
    log_once("same");
    pthread_create(&thread, NULL, log_once, "other");
    pthread_join(thread, NULL);
    return 0;
}

static int set_priority(int priority) {
    struct sched_param parameters = {.sched_priority = priority};
    return pthread_setschedparam(pthread_self(), SCHED_FIFO, &parameters);
}

static void *low(void *unused) {
    set_priority(10);
    write(has_begun[1], "x", 1);
    log_once("low");
    return unused;
}

static void *high(void *unused) {
    char go;
    set_priority(20);
    read(has_begun[0], &go, 1);
    /* Until the other waits for the collector. */
    usleep(50000);
    log_once("high");
    return unused;
}

int main(int argc, char **argv) {
    pthread_t threads[2];
    cpu_set_t first;
    if (argc > 1 && !strcmp(argv[1], "jump"))
        return jump_out();
    CPU_ZERO(&first);
    CPU_SET(0, &first);
    if (set_priority(30) || sched_setaffinity(0, sizeof first, &first) || pipe(has_begun))
        return 4;
    pthread_create(&threads[0], NULL, high, NULL);
    pthread_create(&threads[1], NULL, low, NULL);
    pthread_join(threads[0], NULL);
    pthread_join(threads[1], NULL);
    return 0;
}
