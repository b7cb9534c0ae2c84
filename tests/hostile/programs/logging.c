/* SPDX-License-Identifier: Apache-2.0 */
/* logging RESTRICTION HOW COUNT THREADS: opens channels, starts threads that log once, restricts
 * itself, and logs COUNT numbers in the main thread and once more in each of the others. With
 * "early" as HOW the channels are opened later. */
#include "sandbox.h"
#include <pthread.h>
#include <tare_log.h>

static tare_log_channel numbers, texts;
static int begin[2], end[2], never[2];

static void open_channels(void) {
    numbers = tare_log_open("numbers");
    texts = tare_log_open("texts");
}

static void *log_twice(void *unused) {
    char go;
    tare_log(texts, 1);
    write(end[1], "x", 1);
    read(begin[0], &go, 1);
    tare_log_bytes(texts, "after", 5);
    write(end[1], "x", 1);
    /* The end of a thread makes other calls. */
    for (;;)
        read(never[0], &go, 1);
    return unused;
}

static void wait_for(int threads) {
    char done;
    for (int number = 0; number < threads; number++)
        read(end[0], &done, 1);
}

int main(int argc, char **argv) {
    if (argc != 5 || pipe(begin) || pipe(end) || pipe(never))
        return 2;
    int is_early = !strcmp(argv[2], "early"), threads = atoi(argv[4]);
    long count = atol(argv[3]);
    if (!is_early)
        open_channels();
    for (int number = 0; number < threads; number++) {
        pthread_t thread;
        pthread_create(&thread, NULL, log_twice, NULL);
    }
    wait_for(threads);
    restrict_to(argv[1], argv[2]);
    if (is_early)
        open_channels();
    for (long number = 0; number < count; number++)
        tare_log(numbers, number);
    for (int number = 0; number < threads; number++)
        write(begin[1], "x", 1);
    wait_for(threads);
    leave(0);
}
