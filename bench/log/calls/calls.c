/* SPDX-License-Identifier: Apache-2.0 */
/* calls ticks|tare [wait]: reads the tick counter, or logs events with tare_log.h. */
#include "turns.h"
#include <string.h>
#include <tare_log.h>

int main(int argc, char **argv) {
    if (argc > 1 && !strcmp(argv[1], "ticks")) {
        TURNS(next, __asm__ volatile("" : : "r"(tare_log_ticks())));
        return 0;
    }
    struct tare_log_options options = {.policy = argc > 2 ? TARE_LOG_WAIT : TARE_LOG_DROP};
    tare_log_channel channel = tare_log_open_with("calls", &options);
    TURNS(next, tare_log(channel, next));
}
