/* SPDX-License-Identifier: Apache-2.0 */
/* Event logging in about ten nanoseconds: time and payload go into memory that is shared with
 * another process, which survives this one (docs/log.md).
 *
 *     static tare_log_channel requests;
 *     requests = tare_log_open("requests");       once
 *     tare_log(requests, 42);                     anywhere, in any thread or signal handler
 *
 * Nothing here fails: where nobody collects, events are discarded. Link with -ltare_log. */
#ifndef TARE_LOG_H
#define TARE_LOG_H

#include <stddef.h>
#include <stdint.h>
#if defined(__x86_64__)
#include <x86intrin.h>
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* A channel: its number and the mark of an event. 0 and 1 are no channel. */
typedef uint32_t tare_log_channel;

enum tare_log_handler {
    TARE_LOG_NULL = 1,         /* discards every event */
    TARE_LOG_BUFFERED = 2,     /* keeps every event (default) */
    TARE_LOG_DOWNSAMPLE = 3,   /* keeps every n-th event (10): tare_log_every */
    TARE_LOG_X_OF_Y = 4,       /* keeps events whose payload modulo y, a power of two, is below x
                                * (100 of 16384): tare_log_x_of_y */
    TARE_LOG_ID = 5,           /* keeps every event, in the file when the call returns */
    TARE_LOG_FIRST_LAST = 6,   /* keeps the first event, and the last when the channel is closed
                                * or the process ends, however it does */
    TARE_LOG_MEDIAN = 7,       /* keeps of every n events (1000, 65536 at most) the one in the
                                * middle by time: tare_log_every */
    TARE_LOG_PERIODIC_COUNTER = 8,      /* counts; the first event after a period (10 ms) writes
                                         * the number so far: tare_log_period_ns */
    TARE_LOG_FAST_PERIODIC_COUNTER = 9, /* the same, written by the collector */
    TARE_LOG_FOX_START = 10, /* keeps every event; the collector answers at an address:
                              * tare_log_address */
    TARE_LOG_FOX_END = 11,   /* keeps every event, and how long that start took to answer it, at
                              * most a timeout: tare_log_address */
};

/* What becomes of an event for which there is no room. */
enum tare_log_policy {
    TARE_LOG_DROP = 1,      /* it is lost, and counted (default) */
    TARE_LOG_WAIT = 2,      /* the thread waits for room, as long as there is a collector */
    TARE_LOG_OVERWRITE = 3, /* the oldest events of the thread are lost, and counted */
};

/* How the collector compresses a channel's events. */
enum tare_log_codec {
    TARE_LOG_UNCOMPRESSED = 1,
    TARE_LOG_ZSTD = 2,
    TARE_LOG_LZ4 = 3,
    TARE_LOG_LZO1X = 4,
};

/* The parameters of a handler, as the functions below return them; zeros are its defaults. */
struct tare_log_parameters {
    uint32_t first, second;
};

struct tare_log_options {
    uint8_t handler, policy; /* 0: the default */
    uint8_t codec;           /* 0: as the collector was told */
    uint8_t reserved;
    struct tare_log_parameters parameters;
};

/* Of DOWNSAMPLE and MEDIAN: an event of every n. */
static inline struct tare_log_parameters tare_log_every(uint32_t n) {
    struct tare_log_parameters parameters = {n, 0};
    return parameters;
}

/* Of X_OF_Y: events whose payload modulo y, a power of two, is below x. */
static inline struct tare_log_parameters tare_log_x_of_y(uint32_t x, uint32_t y) {
    struct tare_log_parameters parameters = {x, y};
    return parameters;
}

/* Of PERIODIC_COUNTER and FAST_PERIODIC_COUNTER. */
static inline struct tare_log_parameters tare_log_period_ns(uint64_t period_ns) {
    struct tare_log_parameters parameters = {(uint32_t)period_ns, (uint32_t)(period_ns >> 32)};
    return parameters;
}

/* Of FOX_START and FOX_END: `ipv4` in the byte order of the host, 0x7f000001 is 127.0.0.1. Only
 * FOX_END uses `timeout_ms`; 0 is 1000. */
static inline struct tare_log_parameters tare_log_address(uint32_t ipv4, uint16_t port,
                                                          uint16_t timeout_ms) {
    struct tare_log_parameters parameters = {ipv4, port | (uint32_t)timeout_ms << 16};
    return parameters;
}

/* The channel of this name; made if there is none. `options` may be null: the defaults for a new
 * channel, and no change for one that is open. Not for signal handlers. */
tare_log_channel tare_log_open_with(const char *name, const struct tare_log_options *options);

static inline tare_log_channel tare_log_open(const char *name) {
    return tare_log_open_with(name, NULL);
}

/* Discards the channel's events, until it is opened again. */
void tare_log_close(tare_log_channel channel);

/* What follows is not for programs: the fast path has to know it. */

struct tare_log_writer {
    uint64_t limit, head;
    uint64_t *words;
    uint64_t mask;
    uint64_t *published;
    const uint8_t *modes;
    const void *ring;
    uint64_t has_lost;
};

const struct tare_log_writer *tare_log_slow(const struct tare_log_writer *writer,
                                            tare_log_channel channel, int64_t payload);
const struct tare_log_writer *tare_log_slow_bytes(const struct tare_log_writer *writer,
                                                  tare_log_channel channel, const void *bytes,
                                                  size_t length);

/* The writer that this thread used last, 0 at first. In C every file has one, since C has no word for
 * one of all files of a program or library. */
#if defined(__cplusplus) && __cplusplus >= 201703L
__attribute__((visibility("hidden"))) inline
#else
static
#endif
__thread struct tare_log_writer *tare_log_this
    __attribute__((tls_model("initial-exec"), unused));

static inline uint64_t tare_log_ticks(void) {
#if defined(__x86_64__)
    return __rdtsc();
#elif defined(__aarch64__)
    uint64_t ticks;
    __asm__ volatile("mrs %0, cntvct_el0" : "=r"(ticks));
    return ticks;
#else
#error "tare_log.h is for x86-64 and aarch64"
#endif
}

/* Logs `payload` now. */
static inline void tare_log(tare_log_channel channel, int64_t payload) {
    struct tare_log_writer *writer = tare_log_this;
    uint64_t limit = writer ? __atomic_load_n(&writer->limit, __ATOMIC_RELAXED) : 0;
    if (__builtin_expect(limit != 0, 1)) {
        uint8_t mode = __atomic_load_n(&writer->modes[(channel >> 2) & 0xffff], __ATOMIC_RELAXED);
        int64_t shifted = (int64_t)((uint64_t)payload << 18);
        if (__builtin_expect(mode == 1 && shifted >> 18 == payload, 1)) {
            /* From here on a signal handler leaves its events to the library; one that came
             * before has moved the head. */
            __atomic_store_n(&writer->limit, 0, __ATOMIC_RELAXED);
            __atomic_signal_fence(__ATOMIC_SEQ_CST);
            uint64_t head = writer->head;
            int has_room = head + 2 <= limit;
            if (__builtin_expect(has_room, 1)) {
                uint64_t *place = writer->words + (head & writer->mask);
                __atomic_store_n(&place[0], tare_log_ticks(), __ATOMIC_RELAXED);
                __atomic_store_n(&place[1], (uint64_t)shifted | channel, __ATOMIC_RELAXED);
                __atomic_store_n(writer->published, head + 2, __ATOMIC_RELEASE);
                writer->head = head + 2;
            }
            __atomic_signal_fence(__ATOMIC_SEQ_CST);
            __atomic_store_n(&writer->limit, limit, __ATOMIC_RELAXED);
            if (__builtin_expect(has_room, 1))
                return;
        } else if (mode == 0) {
            return;
        }
    }
    tare_log_this = (struct tare_log_writer *)tare_log_slow(writer, channel, payload);
}

/* Logs `length` bytes, of which the first 4096 are kept. */
static inline void tare_log_bytes(tare_log_channel channel, const void *bytes, size_t length) {
    tare_log_this = (struct tare_log_writer *)tare_log_slow_bytes(tare_log_this, channel, bytes, length);
}

#ifdef __cplusplus
}
#endif
#endif
