/* SPDX-License-Identifier: Apache-2.0 */
/* Logs events with tare_log.hpp. */
#include "timed_loop.h"
#include <tare_log.hpp>

int main() {
    const tare::log::channel channel("calls");
    TIMED_LOOP(next, channel.log(next));
}
