/* SPDX-License-Identifier: Apache-2.0 */
/* A program that waits for its turn: for each line "N" on stdin it logs N events and prints the
 * nanoseconds that took. */
#ifndef TURNS_H
#define TURNS_H
#include <stdint.h>
#include <stdio.h>
#include <time.h>

static inline int64_t now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * INT64_C(1000000000) + time.tv_nsec;
}

#define TURNS(next, LOG)                                                                           \
    do {                                                                                           \
        long turn_events;                                                                          \
        int64_t next = 0;                                                                          \
        while (scanf("%ld", &turn_events) == 1) {                                                  \
            int64_t turn_begin = now();                                                            \
            for (long event = 0; event < turn_events; event++, next++) {                           \
                LOG;                                                                               \
            }                                                                                      \
            printf("%lld\n", (long long)(now() - turn_begin));                                     \
            fflush(stdout);                                                                        \
        }                                                                                          \
    } while (0)

#endif
