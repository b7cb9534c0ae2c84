/* SPDX-License-Identifier: Apache-2.0 */
/* interrupted EVENTS: logs so many events while a timer interrupts, whose handler logs too;
 * prints how many the handler has logged. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <tare_log.h>

static tare_log_channel inside;
static volatile int64_t handled;

static void handle(int number) {
    (void)number;
    tare_log(inside, ++handled);
}

int main(int argc, char **argv) {
    int64_t events = argc > 1 ? atol(argv[1]) : 0;
    struct tare_log_options options = {.policy = TARE_LOG_WAIT};
    inside = tare_log_open_with("inside", &options);
    tare_log_channel outside = tare_log_open_with("outside", &options);
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = handle;
    sigaction(SIGALRM, &action, NULL);
    struct itimerval often = {{0, 50}, {0, 50}}, never = {{0, 0}, {0, 0}};
    setitimer(ITIMER_REAL, &often, NULL);
    for (int64_t event = 1; event <= events; event++)
        tare_log(outside, event);
    setitimer(ITIMER_REAL, &never, NULL);
    printf("%ld\n", (long)handled);
}
