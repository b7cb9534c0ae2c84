/* SPDX-License-Identifier: Apache-2.0 */
/* linked: five events. */
#include <tare_log.hpp>

namespace {
const tare::log::channel numbers("numbers");
const tare::log::span work("work");

void inside() {
    tare::log::scope scope(work, 7);
    numbers.log(-1);
}
} // namespace

int main() {
    numbers.log(42);
    tare_log_options options{};
    options.policy = TARE_LOG_WAIT;
    tare::log::channel("texts", options).bytes("a text");
    inside();
}
