/* SPDX-License-Identifier: Apache-2.0 */
/* Cloudprofiler's calls for C++17, on top of tare_log.h: a program that logs through
 * cloud_profiler.h is compiled with this instead, and linked with -ltare_log.
 *
 *     int64_t requests = openChannel("requests", BINARY, BUFFER_IDENTITY);
 *     logTS(requests, 42);
 *     closeChannel(requests);
 *
 * `tare log run` collects the events; `tare log export --to cloudprofiler` makes the files that
 * Cloudprofiler would have written, one a channel (docs/decisions/0098-*). */
#ifndef TARE_LOG_COMPAT_H
#define TARE_LOG_COMPAT_H

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <mutex>
#include <net/if.h>
#include <string>
#include "tare_log.h"
#include <vector>

/* How a channel's file is written. */
enum log_format { ASCII, ASCII_TSC, BINARY, BINARY_TSC, ZSTD, ZSTD_TSC, LZO1X, LZO1X_TSC };

enum handler_type {
    IDENTITY,
    BUFFER_IDENTITY,
    BUFFER_IDENTITY_COMP,
    MEDIAN,
    DOWNSAMPLE,
    XOY,
    FIRSTLAST,
    PERIODICCOUNTER,
    FASTPERIODICCOUNTER,
    NULLH,
    NET_CONF,
    FOX_START,
    FOX_END,
};

namespace tare::log::compat {

struct opened {
    std::string name; /* of the channel of tare log */
    handler_type handler;
    tare_log_options options;
    tare_log_channel channel;
    bool is_open;
};

/* What was opened so far. It is never destroyed: destructors of the program may still log. */
struct registry {
    std::mutex lock;
    std::vector<std::string> names; /* as they were asked for */
    std::vector<opened> channels;
    tare_log_channel told;
};

inline registry &all() {
    static registry *const known = new registry();
    return *known;
}

/* The first address of this host that is not its loopback's. */
inline std::string address() {
    std::string found = "127.0.0.1";
    ifaddrs *list = nullptr;
    if (getifaddrs(&list))
        return found;
    for (const ifaddrs *one = list; one; one = one->ifa_next) {
        char text[INET_ADDRSTRLEN];
        if (one->ifa_addr && one->ifa_addr->sa_family == AF_INET && !(one->ifa_flags & IFF_LOOPBACK) &&
            inet_ntop(AF_INET, &reinterpret_cast<const sockaddr_in *>(one->ifa_addr)->sin_addr, text, sizeof text)) {
            found = text;
            break;
        }
    }
    freeifaddrs(list);
    return found;
}

/* What Cloudprofiler does with events, as `tare log` calls it: it waits where there is no room. */
inline tare_log_options options_of(log_format format, handler_type handler) {
    tare_log_options options{};
    options.policy = TARE_LOG_WAIT;
    options.handler = TARE_LOG_BUFFERED;
    if (format == ZSTD || format == ZSTD_TSC)
        options.codec = TARE_LOG_ZSTD;
    if (format == LZO1X || format == LZO1X_TSC)
        options.codec = TARE_LOG_LZO1X;
    switch (handler) {
    case IDENTITY:
        options.handler = TARE_LOG_ID;
        break;
    case NULLH:
        options.handler = TARE_LOG_NULL;
        break;
    case FIRSTLAST:
        options.handler = TARE_LOG_FIRST_LAST;
        break;
    case MEDIAN:
        options.handler = TARE_LOG_MEDIAN;
        options.parameters = tare_log_every(1000);
        break;
    case PERIODICCOUNTER:
        options.handler = TARE_LOG_PERIODIC_COUNTER;
        options.parameters = tare_log_period_ns(10000000);
        break;
    case FASTPERIODICCOUNTER:
        options.handler = TARE_LOG_FAST_PERIODIC_COUNTER;
        options.parameters = tare_log_period_ns(10000000);
        break;
    case DOWNSAMPLE:
        options.handler = TARE_LOG_DOWNSAMPLE;
        options.parameters = tare_log_every(10);
        break;
    case XOY:
        options.handler = TARE_LOG_X_OF_Y;
        options.parameters = tare_log_x_of_y(100, 16384);
        break;
    default:
        break;
    }
    return options;
}

/* A channel as Cloudprofiler counts them, in the upper half; the number that logs, in the lower. */
inline opened *find(int64_t channel) {
    registry &known = all();
    const uint64_t place = static_cast<uint64_t>(channel) >> 32;
    return place == 0 || place > known.channels.size() ? nullptr : &known.channels[place - 1];
}

inline void close(opened &channel) {
    channel.is_open = false;
    tare_log_close(channel.channel);
}

inline bool is_power_of_two(int64_t number) { return number > 0 && (number & (number - 1)) == 0; }

/* Whether the handler takes this parameter. */
inline bool parameterize(opened &channel, int32_t argument, int64_t value) {
    if (value < 0)
        return false;
    const uint32_t number = static_cast<uint32_t>(value);
    tare_log_options &options = channel.options;
    if ((channel.handler == PERIODICCOUNTER || channel.handler == FASTPERIODICCOUNTER) && argument == 0 && value >= 1) {
        options.parameters = tare_log_period_ns(static_cast<uint64_t>(value));
    } else if (value > UINT32_MAX) {
        return false;
    } else if ((channel.handler == DOWNSAMPLE || channel.handler == MEDIAN) && argument == 0 && number >= 1) {
        options.parameters = tare_log_every(number);
    } else if (channel.handler == XOY && argument == 0) {
        options.parameters.first = number;
    } else if (channel.handler == XOY && argument == 1 && is_power_of_two(value) &&
               number >= options.parameters.first) {
        options.parameters.second = number;
    } else {
        return false;
    }
    tare_log_open_with(channel.name.c_str(), &options);
    return true;
}

/* `10KiB` is 10240, `1MB` a million; -1 is none. */
inline int64_t size(const std::string &text) {
    size_t end = 0;
    int64_t number = 0;
    while (end < text.size() && text[end] >= '0' && text[end] <= '9' && end < 18)
        number = 10 * number + (text[end++] - '0');
    if (end == 0)
        return -1;
    std::string unit = text.substr(end);
    if (!unit.empty() && unit.back() == 'B')
        unit.pop_back();
    if (unit.empty())
        return number;
    const bool is_binary = unit.size() == 2 && unit[1] == 'i';
    const size_t power = std::string("KMGT").find(unit[0]);
    if ((unit.size() != 1 && !is_binary) || power == std::string::npos)
        return -1;
    for (size_t times = 0; times <= power; times++)
        if (__builtin_mul_overflow(number, is_binary ? int64_t{1024} : int64_t{1000}, &number))
            return -1;
    return number;
}

} // namespace tare::log::compat

/* Each call opens a channel of its own: a name that was there before gets a number behind it. */
inline int64_t openChannel(std::string name, log_format format, handler_type handler) {
    using namespace tare::log::compat;
    registry &known = all();
    const std::lock_guard<std::mutex> only_one(known.lock);
    const size_t number = known.channels.size();
    size_t times = 1;
    for (const std::string &other : known.names)
        times += other == name;
    opened channel{name, handler, options_of(format, handler), 0, true};
    if (times > 1)
        channel.name += " (" + std::to_string(times) + ")";
    /* What a rule says from outside holds where the program leaves it open. */
    channel.channel = handler == NET_CONF ? tare_log_open(channel.name.c_str())
                                          : tare_log_open_with(channel.name.c_str(), &channel.options);
    if (number == 0) {
        tare_log_options kept{};
        kept.policy = TARE_LOG_WAIT;
        known.told = tare_log_open_with("cloudprofiler", &kept);
    }
    /* For `tare log export`: the channel's number here and there, format, handler, address, name. */
    const std::string told = std::to_string(channel.channel >> 2) + ' ' + std::to_string(number) + ' ' +
                             "aibyzdlx"[format] + ' ' + std::to_string(handler) + ' ' + address() + ' ' + name;
    tare_log_bytes(known.told, told.data(), told.size());
    known.names.push_back(std::move(name));
    known.channels.push_back(channel);
    return static_cast<int64_t>(((number + 1) << 32) | channel.channel);
}

inline bool isOpen(int64_t channel) {
    using namespace tare::log::compat;
    const std::lock_guard<std::mutex> only_one(all().lock);
    const opened *known = find(channel);
    return known && known->is_open;
}

inline void closeChannel(int64_t channel) {
    using namespace tare::log::compat;
    const std::lock_guard<std::mutex> only_one(all().lock);
    if (opened *known = find(channel))
        close(*known);
}

/* -1 where the handler has no such parameter, or not with this value: the channel is closed then. */
inline int parameterizeChannel(int64_t channel, int32_t argument, int64_t value) {
    using namespace tare::log::compat;
    const std::lock_guard<std::mutex> only_one(all().lock);
    opened *known = find(channel);
    if (!known || !known->is_open)
        return -1;
    if (parameterize(*known, argument, value))
        return 0;
    close(*known);
    return -1;
}

inline int parameterizeChannel(int64_t channel, int32_t argument, const std::string &value) {
    return parameterizeChannel(channel, argument, tare::log::compat::size(value));
}

/* Logs `tuple` now; -1 closes the channel. */
inline void logTS(int64_t channel, int64_t tuple) {
    if (__builtin_expect(tuple == -1, 0))
        closeChannel(channel);
    else
        tare_log(static_cast<tare_log_channel>(channel), tuple);
}

/* A call that does nothing, to weigh calls with. */
__attribute__((noinline)) inline void nologTS(int64_t channel, int64_t tuple) {
    __asm__ volatile("" : : "r"(channel), "r"(tuple));
}

#endif
