/* SPDX-License-Identifier: Apache-2.0 */
/* stack: logs in signal handlers on a stack of their own, and prints how many bytes of it each call
 * takes. */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <tare_log.h>

#define SIZE (128 << 10)
#define PAINT 0xa5

static unsigned char stack[SIZE], payload[4096];
static unsigned char *volatile top;
static tare_log_channel channels[4];
static volatile int what;

static __attribute__((noinline)) void log_it(void) {
    switch (what % 3) {
    case 0:
        tare_log(channels[what / 3], 7);
        break;
    case 1:
        tare_log(channels[what / 3], INT64_MAX);
        break;
    default:
        tare_log_bytes(channels[what / 3], payload, sizeof payload);
    }
}

static void handle(int signal) {
    top = __builtin_frame_address(0);
    log_it();
    (void)signal;
}

static long used(int number) {
    memset(stack, PAINT, sizeof stack);
    what = number;
    raise(SIGUSR1);
    unsigned char *lowest = stack;
    while (*lowest == PAINT)
        lowest++;
    return top - lowest;
}

static void *measure(void *unused) {
    stack_t own = {.ss_sp = stack, .ss_size = sizeof stack};
    sigaltstack(&own, NULL);
    printf("first %ld\n", used(0));
    for (int number = 0; number < 12; number++)
        printf("%d %ld\n", number, used(number));
    return unused;
}

int main(void) {
    static const uint8_t handlers[] = {TARE_LOG_BUFFERED, TARE_LOG_ID, TARE_LOG_FIRST_LAST,
                                       TARE_LOG_MEDIAN};
    struct sigaction action = {.sa_handler = handle, .sa_flags = SA_ONSTACK};
    sigaction(SIGUSR1, &action, NULL);
    for (int number = 0; number < 4; number++) {
        struct tare_log_options options = {.handler = handlers[number]};
        char name[2] = {'a' + number};
        channels[number] = tare_log_open_with(name, &options);
    }
    pthread_t thread;
    pthread_create(&thread, NULL, measure, NULL);
    pthread_join(thread, NULL);
}
