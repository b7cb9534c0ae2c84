/* SPDX-License-Identifier: Apache-2.0 */
/* interrupted EVENTS SIGNALS: logs at least so many events, until a timer has interrupted it so
 * many times, whose handler logs too; prints how many each has logged. */
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
    if (argc < 3)
        return 2;
    int64_t events = atol(argv[1]), signals = atol(argv[2]), logged = 0;
    struct tare_log_options options = {.policy = TARE_LOG_WAIT};
    inside = tare_log_open_with("inside", &options);
    tare_log_channel outside = tare_log_open_with("outside", &options);
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = handle;
    sigaction(SIGALRM, &action, NULL);
    struct itimerval often = {{0, 50}, {0, 50}}, never = {{0, 0}, {0, 0}};
    setitimer(ITIMER_REAL, &often, NULL);
    while (logged < events || handled < signals)
        tare_log(outside, ++logged);
    setitimer(ITIMER_REAL, &never, NULL);
    printf("%ld %ld\n", (long)logged, (long)handled);
}
