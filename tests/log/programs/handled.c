/* SPDX-License-Identifier: Apache-2.0 */
/* handled EVENTS SEED THREADS close|end|kill NAME...: each thread logs so many random numbers, each
 * of them on every channel named, in turn; the first of these closes the channels in the end or
 * does not, or the process kills itself. */
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <tare_log.h>
#include <unistd.h>

enum { MOST = 16 };
static tare_log_channel channels[MOST];
static int named;
static long events;
static uint64_t seed;

/* Marsaglia's xorshift64. */
static uint64_t next(uint64_t state) {
    state ^= state << 13;
    state ^= state >> 7;
    return state ^ state << 17;
}

static void *log_all(void *number) {
    uint64_t state = seed + (uint64_t)(long)number;
    for (long event = 0; event < events; event++) {
        state = next(state);
        for (int place = 0; place < named; place++)
            tare_log(channels[place], (int64_t)state >> 20);
    }
    return NULL;
}

int main(int argc, char **argv) {
    if (argc < 6)
        return 2;
    events = atol(argv[1]);
    seed = strtoull(argv[2], NULL, 10);
    long threads = atol(argv[3]);
    for (named = 0; named < argc - 5 && named < MOST; named++)
        channels[named] = tare_log_open(argv[5 + named]);
    pthread_t started[MOST];
    for (long number = 1; number < threads && number < MOST; number++)
        if (pthread_create(&started[number], NULL, log_all, (void *)number))
            return 1;
    log_all((void *)0);
    for (long number = 1; number < threads && number < MOST; number++)
        pthread_join(started[number], NULL);
    if (!strcmp(argv[4], "close"))
        for (int place = 0; place < named; place++)
            tare_log_close(channels[place]);
    if (!strcmp(argv[4], "kill"))
        kill(getpid(), SIGKILL);
}
