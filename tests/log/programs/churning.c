/* SPDX-License-Identifier: Apache-2.0 */
/* churning THREADS: starts so many threads, sixteen at a time, each of which logs its number. */
#include <pthread.h>
#include <stdlib.h>
#include <tare_log.h>

enum { TOGETHER = 16 };
static tare_log_channel channel;

static void *log_number(void *number) {
    tare_log(channel, (long)number);
    return NULL;
}

int main(int argc, char **argv) {
    long threads = argc > 1 ? atol(argv[1]) : 0;
    struct tare_log_options options = {.policy = TARE_LOG_WAIT};
    channel = tare_log_open_with("short", &options);
    for (long first = 0; first < threads; first += TOGETHER) {
        pthread_t started[TOGETHER];
        long count = threads - first < TOGETHER ? threads - first : TOGETHER;
        for (long place = 0; place < count; place++)
            if (pthread_create(&started[place], NULL, log_number, (void *)(first + place)))
                return 1;
        for (long place = 0; place < count; place++)
            pthread_join(started[place], NULL);
    }
}
