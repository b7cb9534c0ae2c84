/* SPDX-License-Identifier: Apache-2.0 */
/* A timed loop: for each line "N" on stdin it logs N events and prints the
 * nanoseconds that took. */
#ifndef TIMED_LOOP_H
#define TIMED_LOOP_H
#include <stdint.h>
#include <stdio.h>
#include <time.h>

static inline int64_t now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * INT64_C(1000000000) + time.tv_nsec;
}

#define TIMED_LOOP(next, LOG)                                                                      \
    do {                                                                                           \
        long loop_events;                                                                          \
        int64_t next = 0;                                                                          \
        while (scanf("%ld", &loop_events) == 1) {                                                  \
            int64_t loop_begin = now();                                                            \
            for (long event = 0; event < loop_events; event++, next++) {                           \
                LOG;                                                                               \
            }                                                                                      \
            printf("%lld\n", (long long)(now() - loop_begin));                                     \
            fflush(stdout);                                                                        \
        }                                                                                          \
    } while (0)

#endif
