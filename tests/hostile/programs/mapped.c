/* SPDX-License-Identifier: Apache-2.0 */
/* mapped: prints how many mappings of Tare this program has, and how many of them its core would
 * have. With -DLOGGING it logs before. */
#include <stdio.h>
#include <string.h>
#ifdef LOGGING
#include <tare_log.h>
#endif

int main(void) {
    char line[512];
    int mappings = 0, dumped = 0, is_ours = 0;
#ifdef LOGGING
    tare_log(tare_log_open("numbers"), 1);
#endif
    FILE *maps = fopen("/proc/self/smaps", "r");
    while (maps && fgets(line, sizeof line, maps)) {
        if (strstr(line, "/memfd:")) {
            is_ours = !!strstr(line, "/memfd:tare");
            mappings += is_ours;
        }
        if (is_ours && !strncmp(line, "VmFlags:", 8)) {
            dumped += !strstr(line, " dd");
            is_ours = 0;
        }
    }
    printf("%d %d\n", mappings, dumped);
}
