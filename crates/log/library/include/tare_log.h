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
    TARE_LOG_DOWNSAMPLE = 3,   /* keeps every a-th event (10) */
    TARE_LOG_X_OF_Y = 4,       /* keeps events whose payload modulo b, a power of two, is below a
                                * (100 of 16384) */
    TARE_LOG_ID = 5,           /* keeps every event, in the file when the call returns */
    TARE_LOG_FIRST_LAST = 6,   /* keeps the first event, and the last when the channel is closed
                                * or the process ends, however it does */
    TARE_LOG_MEDIAN = 7,       /* keeps of every a events (1000, 65536 at most) the one in the
                                * middle by time */
    TARE_LOG_PERIODIC_COUNTER = 8,      /* counts; the first event after a period of
                                         * a + 2^32 b ns (10 ms) writes the number so far */
    TARE_LOG_FAST_PERIODIC_COUNTER = 9, /* the same, written by the collector */
    TARE_LOG_FOX_START = 10, /* keeps every event; the collector answers at the IPv4 address a,
                              * port b */
    TARE_LOG_FOX_END = 11,   /* keeps every event, and how long that start took to answer it, at
                              * most b >> 16 ms (1000) */
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

struct tare_log_options {
    uint8_t handler, policy; /* 0: the default */
    uint8_t codec;           /* 0: as the collector was told */
    uint8_t reserved;
    uint32_t a, b; /* both 0: the default of the handler */
};

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
