/* SPDX-License-Identifier: Apache-2.0 */
/* starting PORT: logs an event on a channel whose round trips start at this port of 127.0.0.1. */
#include <stdlib.h>
#include <tare_log.h>

int main(int argc, char **argv) {
    struct tare_log_options start = {.handler = TARE_LOG_FOX_START};
    start.parameters = tare_log_address(0x7f000001, argc > 1 ? (uint16_t)atoi(argv[1]) : 0, 0);
    tare_log(tare_log_open_with("out", &start), 1);
}
