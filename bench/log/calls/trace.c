/* SPDX-License-Identifier: Apache-2.0 */
/* trace calls|random: logs, as fast as the collector bears, what calls of depth 10 log when each
 * begins and ends, or random payloads of 46 bits. N is events. */
#include "timed_loop.h"
#include <string.h>
#include <tare_log.h>

enum { DEPTH = 10 };

static uint64_t state = 88172645463325252;

static int64_t chance(void) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (int64_t)state >> 18;
}

int main(int argc, char **argv) {
    if (argc != 2)
        return 2;
    struct tare_log_options options = {.policy = TARE_LOG_WAIT};
    tare_log_channel begin = tare_log_open_with("call>", &options);
    tare_log_channel end = tare_log_open_with("call<", &options);
    if (!strcmp(argv[1], "random"))
        TIMED_LOOP(next, tare_log(begin, chance()));
    else
        TIMED_LOOP(next, {
            long place = next % (2 * DEPTH);
            if (place < DEPTH)
                tare_log(begin, DEPTH - place);
            else
                tare_log(end, place - DEPTH + 1);
        });
}
