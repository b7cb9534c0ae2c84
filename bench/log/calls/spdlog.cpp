/* SPDX-License-Identifier: Apache-2.0 */
/* spdlog FILE: logs lines asynchronously into a file, as spdlog's documentation shows it. */
#include "timed_loop.h"
#include <spdlog/async.h>
#include <spdlog/sinks/basic_file_sink.h>
#include <spdlog/spdlog.h>

int main(int argc, char **argv) {
    if (argc != 2)
        return 2;
    spdlog::init_thread_pool(1 << 16, 1);
    auto logger = spdlog::basic_logger_mt<spdlog::async_factory_nonblock>("calls", argv[1]);
    TIMED_LOOP(next, logger->info("{}", next));
    spdlog::shutdown();
}
