/* SPDX-License-Identifier: Apache-2.0 */
/* codecs EVENTS: logs on channels of every codec in turn, numbers and now and then a text. */
#include <stdio.h>
#include <stdlib.h>
#include <tare_log.h>

int main(int argc, char **argv) {
    long events = argc > 1 ? atol(argv[1]) : 0;
    tare_log_channel channels[5];
    for (uint8_t codec = 0; codec < 5; codec++) {
        char name[16];
        snprintf(name, sizeof name, "codec %d", codec);
        struct tare_log_options options = {.policy = TARE_LOG_WAIT, .codec = codec};
        channels[codec] = tare_log_open_with(name, &options);
    }
    for (long event = 0; event < events; event++) {
        if (event % 100 == 7)
            tare_log_bytes(channels[event % 5], "seven", 5);
        else
            tare_log(channels[event % 5], event * event);
    }
}
