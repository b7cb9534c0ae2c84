// SPDX-License-Identifier: Apache-2.0
// Opens so many channels and logs into each.
#include <stdio.h>
#include <stdlib.h>
#include <tare_log.h>

int main(int argc, char **argv) {
    int count = argc > 1 ? atoi(argv[1]) : 0;
    for (int i = 0; i < count; i++) {
        char name[16];
        snprintf(name, sizeof name, "%d", i);
        tare_log(tare_log_open(name), i);
    }
    return 0;
}
