/* SPDX-License-Identifier: Apache-2.0 */
/* vector: logs what tests/log/vector.txt says, and stays until its input ends. */
#include <cstdint>
#include <iostream>
#include <tare_log.hpp>

int main() {
    const tare::log::channel numbers("numbers"), texts(std::string("texts"));
    const tare::log::span work("work");
    const int64_t edge = int64_t{1} << 45;
    for (int64_t number : {int64_t{0}, int64_t{-1}, edge - 1, -edge, edge, -edge - 1, INT64_MAX, INT64_MIN})
        numbers.log(number);
    for (const char *text : {"", "a", "fifteen letters", "sixteen letters!", "seventeen letters"})
        texts.bytes(text);
    try {
        tare::log::scope inside(work, 42);
        throw 1;
    } catch (int) {
    }
    std::cout << "ready" << std::endl;
    std::cin.get();
}
