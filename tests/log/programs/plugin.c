/* SPDX-License-Identifier: Apache-2.0 */
/* plugin: part of a program that has other copies of the library too. */
#include <tare_log.h>

void log_from_here(int64_t number);

void log_from_here(int64_t number) {
    static tare_log_channel numbers;
    if (!numbers)
        numbers = tare_log_open("numbers");
    tare_log(numbers, number);
}
