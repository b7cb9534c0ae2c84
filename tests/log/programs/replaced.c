/* SPDX-License-Identifier: Apache-2.0 */
/* replaced EVENTS PROGRAM ...: logs numbers, waits for a line, and becomes another program. */
#include <stdio.h>
#include <stdlib.h>
#include <tare_log.h>
#include <unistd.h>

int main(int argc, char **argv) {
    tare_log_channel channel = tare_log_open("replaced");
    for (int i = 0; i < atoi(argv[1]); i++) {
        tare_log(channel, i);
    }
    getchar();
    execvp(argv[2], argv + 2);
    return argc;
}
