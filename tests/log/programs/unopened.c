// SPDX-License-Identifier: Apache-2.0
/* unopened COUNT: logs the numbers below COUNT on the channel "numbers", and between them on
 * channels that were never opened. */
#include <stdlib.h>
#include <tare_log.h>

static tare_log_channel never;

int main(int argc, char **argv) {
    long count = argc > 1 ? atol(argv[1]) : 0;
    struct tare_log_options options = {.policy = TARE_LOG_WAIT};
    tare_log_channel numbers = tare_log_open_with("numbers", &options);
    for (int64_t number = 0; number < count; number++) {
        tare_log(numbers, number);
        tare_log(never, number);
        tare_log(1, number);
        tare_log_bytes(never, &number, sizeof number);
    }
}
