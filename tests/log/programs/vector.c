/* SPDX-License-Identifier: Apache-2.0 */
/* vector: logs what tests/log/vector.txt says, and stays until its input ends. */
#include <stdio.h>
#include <string.h>
#include <tare_log.h>

int main(void) {
    tare_log_channel numbers = tare_log_open("numbers");
    tare_log_channel texts = tare_log_open("texts");
    tare_log_channel begin = tare_log_open("work>"), end = tare_log_open("work<");
    const int64_t edge = (int64_t)1 << 45;
    const int64_t all[] = {0, -1, edge - 1, -edge, edge, -edge - 1, INT64_MAX, INT64_MIN};
    for (size_t place = 0; place < sizeof all / sizeof *all; place++)
        tare_log(numbers, all[place]);
    const char *const words[] = {"", "a", "fifteen letters", "sixteen letters!", "seventeen letters"};
    for (size_t place = 0; place < sizeof words / sizeof *words; place++)
        tare_log_bytes(texts, words[place], strlen(words[place]));
    tare_log(begin, 42);
    tare_log(end, 42);
    puts("ready");
    fflush(stdout);
    getchar();
}
