// SPDX-License-Identifier: Apache-2.0
// Threads whose reads hold keywords, at a steady rate together.
//
// matches THREADS RATE SECONDS: each thread sends itself packets of 64 keywords over a
// socketpair and reads them, so that all together read RATE keywords a second. Prints how many
// keywords were read. With 0 seconds, they read until standard input ends.
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { PACKET = 64, BURST = 8 };  // keywords a packet, packets between two looks at the clock

static const char keyword[] = "needle. ";
static int threads;
static double rate, seconds;
static atomic_int is_over;

static void must(int ok, const char *what) {
    if (ok) return;
    perror(what);
    exit(1);
}

static long long now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static void sleep_until(long long moment) {
    struct timespec t = {moment / 1000000000, moment % 1000000000};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, 0)) continue;
}

static void *work(void *argument) {
    enum { SIZE = PACKET * (sizeof keyword - 1) };
    char packet[SIZE], buffer[SIZE];
    int pair[2];
    for (int copy = 0; copy < PACKET; copy++)
        memcpy(packet + copy * (sizeof keyword - 1), keyword, sizeof keyword - 1);
    must(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0, "socketpair");
    long burst, bursts = rate * seconds / threads / (PACKET * BURST);
    double step = threads * (PACKET * BURST) / rate * 1e9;
    // They do not all work at the same moment.
    long long start = now() + (long long)(step * (long)argument / threads);
    for (burst = 0; seconds > 0 ? burst < bursts : !is_over; burst++) {
        sleep_until(start + (long long)(burst * step));
        for (int message = 0; message < BURST; message++) {
            must(write(pair[1], packet, SIZE) == SIZE, "write");
            for (int got = 0; got < SIZE;) {
                ssize_t count = read(pair[0], buffer, SIZE - got);
                must(count > 0, "read");
                got += count;
            }
        }
    }
    return (void *)(burst * BURST * PACKET);
}

int main(int argc, char **argv) {
    must(argc == 4, "matches THREADS RATE SECONDS");
    threads = atoi(argv[1]), rate = atof(argv[2]), seconds = atof(argv[3]);
    pthread_t *all = calloc(threads, sizeof *all);
    long long keywords = 0;
    for (long thread = 0; thread < threads; thread++)
        must(pthread_create(&all[thread], 0, work, (void *)thread) == 0, "pthread_create");
    if (seconds == 0) {
        while (getchar() != EOF) continue;
        is_over = 1;
    }
    for (int thread = 0; thread < threads; thread++) {
        void *done;
        pthread_join(all[thread], &done);
        keywords += (long)done;
    }
    printf("%lld\n", keywords);
    return 0;
}
