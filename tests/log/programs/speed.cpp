/* SPDX-License-Identifier: Apache-2.0 */
/* speed EVENTS BURSTS [wait|overwrite]: as speed.c. */
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <string>
#include <tare_log.hpp>
#include <thread>
#include <vector>

int main(int count, char **words) {
    if (count < 3)
        return 2;
    using clock = std::chrono::steady_clock;
    const long events = std::atol(words[1]), bursts = std::atol(words[2]);
    const std::string policy = count > 3 ? words[3] : "drop";
    tare_log_options options{};
    options.policy = policy == "wait" ? TARE_LOG_WAIT : policy == "overwrite" ? TARE_LOG_OVERWRITE : TARE_LOG_DROP;
    const tare::log::channel channel("speed", options);
    std::vector<double> times;
    int64_t next = 0;
    for (long burst = 0; burst < bursts; burst++) {
        const auto begin = clock::now();
        for (long event = 0; event < events; event++)
            channel.log(next++);
        const std::chrono::duration<double, std::nano> time = clock::now() - begin;
        times.push_back(time.count() / static_cast<double>(events));
        if (policy != "wait")
            std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    std::sort(times.begin(), times.end());
    const double mean = std::accumulate(times.begin(), times.end(), 0.0) / static_cast<double>(times.size());
    std::printf("min %.2f median %.2f mean %.2f ns\n", times.front(), times[times.size() / 2], mean);
}
