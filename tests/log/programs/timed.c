/* SPDX-License-Identifier: Apache-2.0 */
/* timed EVENTS MICROSECONDS: logs on the channel `timed` what CLOCK_REALTIME says, in nanoseconds,
 * with a pause behind each event; 0 events are endless. */
#include <stdlib.h>
#include <tare_log.h>
#include <time.h>

int main(int argc, char **argv) {
    if (argc < 3)
        return 2;
    long events = atol(argv[1]);
    struct timespec now, pause = {0, atol(argv[2]) * 1000};
    tare_log_channel timed = tare_log_open("timed");
    for (long event = 0; event < events || !events; event++) {
        clock_gettime(CLOCK_REALTIME, &now);
        tare_log(timed, (int64_t)now.tv_sec * 1000000000 + now.tv_nsec);
        nanosleep(&pause, NULL);
    }
}
