/* SPDX-License-Identifier: Apache-2.0 */
/* Logs events with tare_log.hpp. */
#include "turns.h"
#include <tare_log.hpp>

int main() {
    const tare::log::channel channel("calls");
    TURNS(next, channel.log(next));
}
