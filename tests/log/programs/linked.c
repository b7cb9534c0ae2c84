/* SPDX-License-Identifier: Apache-2.0 */
/* linked: five events. It is compiled as C and as C++. */
#include <string.h>
#include <tare_log.h>
#include <tare_shm.h>

int main(void) {
    const char *text = "a text";
    tare_log_channel numbers = tare_log_open("numbers");
    tare_log_channel begin = tare_log_open("work>"), end = tare_log_open("work<");
    tare_log(numbers, 42);
    tare_log_bytes(tare_log_open("texts"), text, strlen(text));
    tare_log(begin, 7);
    tare_log(numbers, -1);
    tare_log(end, 7);
    return 0;
}
