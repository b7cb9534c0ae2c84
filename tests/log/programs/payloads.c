/* SPDX-License-Identifier: Apache-2.0 */
/* payloads: numbers of all sizes, texts, and what handlers leave of a hundred events. */
#include <stdlib.h>
#include <string.h>
#include <tare_log.h>

int main(void) {
    tare_log_channel numbers = tare_log_open("numbers");
    const int64_t all[] = {0, -1, ((int64_t)1 << 45) - 1, -((int64_t)1 << 45), (int64_t)1 << 45, INT64_MAX, INT64_MIN};
    for (size_t place = 0; place < sizeof all / sizeof *all; place++)
        tare_log(numbers, all[place]);
    tare_log_channel texts = tare_log_open("texts, \"quoted\"");
    tare_log_bytes(texts, "hello, world", 12);
    tare_log_bytes(texts, "", 0);
    char *large = malloc(5000);
    memset(large, 'x', 5000);
    tare_log_bytes(texts, large, 5000);
    struct tare_log_options each_tenth = {
        .handler = TARE_LOG_DOWNSAMPLE, .parameters = tare_log_every(10)};
    struct tare_log_options three_of_eight = {
        .handler = TARE_LOG_X_OF_Y, .parameters = tare_log_x_of_y(3, 8)};
    struct tare_log_options none = {.handler = TARE_LOG_NULL};
    tare_log_channel tenth = tare_log_open_with("tenth", &each_tenth);
    tare_log_channel some = tare_log_open_with("some", &three_of_eight);
    tare_log_channel never = tare_log_open_with("never", &none);
    for (int64_t event = 0; event < 100; event++) {
        tare_log(tenth, event);
        tare_log(some, event);
        tare_log(never, event);
    }
    tare_log_close(numbers);
    tare_log(numbers, 42);
    tare_log(tare_log_open("numbers"), 43);
}
