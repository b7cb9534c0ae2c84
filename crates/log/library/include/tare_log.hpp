/* SPDX-License-Identifier: Apache-2.0 */
/* tare_log.h for C++17: channels and spans as values. A call costs what it costs in C.
 *
 *     static const tare::log::channel requests("requests");
 *     requests.log(42);
 *
 *     static const tare::log::span work("work");
 *     {
 *         tare::log::scope inside(work, 42);   logs the beginning here
 *     }                                        and the end here, whatever way leads out
 */
#ifndef TARE_LOG_HPP
#define TARE_LOG_HPP

#include <string>
#include <string_view>
#include <tare_log.h>

namespace tare::log {

/* A stream of events with a name. It is a number that can be copied; the channel stays open,
 * whatever becomes of the copies, since others may have it by its name: close() is for all. */
class channel {
public:
    explicit channel(const char *name) : number_(tare_log_open(name)) {}
    explicit channel(const std::string &name) : channel(name.c_str()) {}
    channel(const char *name, const tare_log_options &options)
        : number_(tare_log_open_with(name, &options)) {}
    channel(const std::string &name, const tare_log_options &options)
        : channel(name.c_str(), options) {}

    void log(int64_t number) const noexcept { tare_log(number_, number); }
    void bytes(const void *bytes, size_t length) const noexcept {
        tare_log_bytes(number_, bytes, length);
    }
    void bytes(std::string_view text) const noexcept { bytes(text.data(), text.size()); }
    void close() const noexcept { tare_log_close(number_); }

private:
    tare_log_channel number_;
};

/* What begins and ends: channels NAME> and NAME<, whose events are read as pairs. */
class span {
public:
    explicit span(const std::string &name) : begin_(name + '>'), end_(name + '<') {}
    span(const std::string &name, const tare_log_options &options)
        : begin_(name + '>', options), end_(name + '<', options) {}

    void begin(int64_t number = 0) const noexcept { begin_.log(number); }
    void end(int64_t number = 0) const noexcept { end_.log(number); }

private:
    channel begin_, end_;
};

/* Logs the beginning of a span, and its end where it goes out of scope. */
class [[nodiscard]] scope {
public:
    explicit scope(const span &span, int64_t number = 0) noexcept : span_(span), number_(number) {
        span_.begin(number_);
    }
    ~scope() { span_.end(number_); }
    scope(const scope &) = delete;
    scope &operator=(const scope &) = delete;

private:
    const span span_;
    const int64_t number_;
};

} // namespace tare::log

#endif
