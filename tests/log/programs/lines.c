/* SPDX-License-Identifier: Apache-2.0 */
/* lines: logs a little in every way after each byte of its input, and prints "done". */
#include <stdio.h>
#include <tare_log.h>

int main(void) {
    static const char bytes[4096];
    tare_log_channel numbers = tare_log_open("numbers"), all[12] = {0};
    for (uint8_t handler = 1; handler < 12; handler++) {
        char name[16];
        struct tare_log_options options = {
            .handler = handler, .policy = 1 + handler % 3, .parameters = tare_log_every(3)};
        snprintf(name, sizeof name, "%d", handler);
        all[handler] = tare_log_open_with(name, &options);
    }
    puts("ready");
    fflush(stdout);
    while (getchar() != EOF) {
        for (int number = 0; number < 64; number++) {
            tare_log(numbers, number);
            tare_log(numbers, (int64_t)number << 46);
            for (int handler = 1; handler < 12; handler++)
                tare_log_bytes(all[handler], bytes, 64 * number);
        }
        tare_log_close(tare_log_open("others"));
        puts("done");
        fflush(stdout);
    }
}
