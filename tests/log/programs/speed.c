/* SPDX-License-Identifier: Apache-2.0 */
/* speed EVENTS BURSTS [wait|overwrite]: the time of a call in bursts with pauses between, in ns; prints
 * the least, the median and the mean over all bursts. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tare_log.h>
#include <time.h>

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1e9 + time.tv_nsec;
}

static int order(const void *left, const void *right) {
    double difference = *(const double *)left - *(const double *)right;
    return (difference > 0) - (difference < 0);
}

int main(int argc, char **argv) {
    if (argc < 3)
        return 2;
    long events = atol(argv[1]), bursts = atol(argv[2]);
    int waits = argc > 3 && !strcmp(argv[3], "wait");
    int overwrites = argc > 3 && !strcmp(argv[3], "overwrite");
    uint8_t policy = waits ? TARE_LOG_WAIT : overwrites ? TARE_LOG_OVERWRITE : TARE_LOG_DROP;
    struct tare_log_options options = {.policy = policy};
    tare_log_channel channel = tare_log_open_with("speed", &options);
    double *times = calloc(bursts, sizeof *times), sum = 0;
    int64_t next = 0;
    for (long burst = 0; burst < bursts; burst++) {
        double begin = now();
        for (long event = 0; event < events; event++)
            tare_log(channel, next++);
        sum += times[burst] = (now() - begin) / events;
        if (!waits) {
            struct timespec pause = {0, 5000000};
            nanosleep(&pause, NULL);
        }
    }
    qsort(times, bursts, sizeof *times, order);
    printf("min %.2f median %.2f mean %.2f ns\n", times[0], times[bursts / 2], sum / bursts);
}
