/* SPDX-License-Identifier: Apache-2.0 */
/* calls ticks|tare [wait|id]: reads the tick counter, or logs events with tare_log.h. */
#include "timed_loop.h"
#include <string.h>
#include <tare_log.h>

int main(int argc, char **argv) {
    if (argc > 1 && !strcmp(argv[1], "ticks")) {
        TIMED_LOOP(next, __asm__ volatile("" : : "r"(tare_log_ticks())));
        return 0;
    }
    const char *kind = argc > 2 ? argv[2] : "";
    struct tare_log_options options = {
        .handler = strcmp(kind, "id") ? TARE_LOG_BUFFERED : TARE_LOG_ID,
        .policy = strcmp(kind, "wait") ? TARE_LOG_DROP : TARE_LOG_WAIT,
    };
    tare_log_channel channel = tare_log_open_with("calls", &options);
    TIMED_LOOP(next, tare_log(channel, next));
}
