/* SPDX-License-Identifier: Apache-2.0 */
/* opened: opens a channel, prints "ready", and logs 1, 2, 3 when it has read a line. */
#include <stdio.h>
#include <tare_log.h>

int main(void) {
    tare_log_channel channel = tare_log_open("numbers");
    puts("ready");
    fflush(stdout);
    if (getchar() == EOF)
        return 2;
    for (long number = 1; number <= 3; number++)
        tare_log(channel, number);
    return 0;
}
