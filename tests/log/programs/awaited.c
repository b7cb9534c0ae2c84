/* SPDX-License-Identifier: Apache-2.0 */
/* awaited EVENTS: logs 0, prints "ready", and logs 1, 2, 3 ... when it has read a line. */
#include <stdio.h>
#include <stdlib.h>
#include <tare_log.h>

int main(int argc, char **argv) {
    struct tare_log_options options = {.policy = TARE_LOG_WAIT};
    tare_log_channel channel = tare_log_open_with("awaited", &options);
    tare_log(channel, 0);
    puts("ready");
    fflush(stdout);
    if (argc < 2 || getchar() == EOF)
        return 2;
    for (long number = 1; number < atol(argv[1]); number++)
        tare_log(channel, number);
    return 0;
}
