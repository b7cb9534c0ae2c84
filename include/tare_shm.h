/* SPDX-License-Identifier: Apache-2.0 */
/* The memory that Tare's programs share: what every segment begins with, rings, and the segment
 * of a program that logs (docs/formats/shm.md, docs/formats/log-segment.md).
 *
 * The layout stands here once: this compiler checks each line TARE_SHM_AT and TARE_SHM_SIZE, and
 * tests hold the writers in every language to the same lines. All of it is written by other
 * processes at any time: read each field once, atomically, and check it. */
#ifndef TARE_SHM_H
#define TARE_SHM_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
#define TARE_SHM_ASSERT(what) static_assert(what, #what)
#else
#define TARE_SHM_ASSERT(what) _Static_assert(what, #what)
#endif
#define TARE_SHM_AT(type, field, offset) TARE_SHM_ASSERT(offsetof(struct type, field) == offset)
#define TARE_SHM_SIZE(type, bytes) TARE_SHM_ASSERT(sizeof(struct type) == bytes)

/* The bytes `TAREshm1` in the memory of a little-endian machine. */
#define TARE_SHM_MAGIC 0x316d687345524154u

#define TARE_SHM_KIND_LOG 3

struct tare_shm_header {
    uint64_t magic;
    uint32_t version, kind;
    uint64_t size;        /* bytes of the whole segment */
    uint64_t owner_start; /* in clock ticks after boot */
    uint32_t owner_pid;
    uint8_t reserved[28];
};
TARE_SHM_SIZE(tare_shm_header, 64);
TARE_SHM_AT(tare_shm_header, magic, 0);
TARE_SHM_AT(tare_shm_header, version, 8);
TARE_SHM_AT(tare_shm_header, kind, 12);
TARE_SHM_AT(tare_shm_header, size, 16);
TARE_SHM_AT(tare_shm_header, owner_start, 24);
TARE_SHM_AT(tare_shm_header, owner_pid, 32);

/* The counters of a ring; its words follow where the segment says. */
struct tare_shm_ring {
    uint64_t head; /* words written; to be advanced with release order */
    uint64_t tail_seen;
    uint64_t lost;
    uint8_t producer[104];
    uint64_t tail; /* words read */
    uint8_t consumer[120];
};
TARE_SHM_SIZE(tare_shm_ring, 256);
TARE_SHM_AT(tare_shm_ring, head, 0);
TARE_SHM_AT(tare_shm_ring, tail_seen, 8);
TARE_SHM_AT(tare_shm_ring, lost, 16);
TARE_SHM_AT(tare_shm_ring, tail, 128);

/* --- A program that logs: one tare_log_process, then so many rings. --- */

#define TARE_LOG_VERSION 4
#define TARE_LOG_CHANNELS 16384
#define TARE_LOG_NAMES 4194304
#define TARE_LOG_RULE_SETTINGS 256
#define TARE_LOG_RINGS 1024
#define TARE_LOG_STATES 4194304

struct tare_log_process_channel {
    uint32_t opened, tid, name_at, name_length;
    uint64_t asked[2];
    uint32_t closed;
    uint8_t threads[92];
    uint64_t socket_inode, socket_device, answered;
    uint8_t collector[104];
    uint64_t lost, count, seen, last_at, counted, period_began, period_ticks, counter_told;
    uint64_t written, deferred, asked_starts;
    uint8_t counters[40];
};
TARE_SHM_SIZE(tare_log_process_channel, 384);
TARE_SHM_AT(tare_log_process_channel, opened, 0);
TARE_SHM_AT(tare_log_process_channel, tid, 4);
TARE_SHM_AT(tare_log_process_channel, name_at, 8);
TARE_SHM_AT(tare_log_process_channel, name_length, 12);
TARE_SHM_AT(tare_log_process_channel, asked, 16);
TARE_SHM_AT(tare_log_process_channel, closed, 32);
TARE_SHM_AT(tare_log_process_channel, socket_inode, 128);
TARE_SHM_AT(tare_log_process_channel, socket_device, 136);
TARE_SHM_AT(tare_log_process_channel, answered, 144);
TARE_SHM_AT(tare_log_process_channel, lost, 256);
TARE_SHM_AT(tare_log_process_channel, count, 264);
TARE_SHM_AT(tare_log_process_channel, seen, 272);
TARE_SHM_AT(tare_log_process_channel, last_at, 280);
TARE_SHM_AT(tare_log_process_channel, counted, 288);
TARE_SHM_AT(tare_log_process_channel, period_began, 296);
TARE_SHM_AT(tare_log_process_channel, period_ticks, 304);
TARE_SHM_AT(tare_log_process_channel, counter_told, 312);
TARE_SHM_AT(tare_log_process_channel, written, 320);
TARE_SHM_AT(tare_log_process_channel, deferred, 328);
TARE_SHM_AT(tare_log_process_channel, asked_starts, 336);

/* What is done with events of the thread that writes to a ring, by channel. */
struct tare_log_table {
    uint8_t modes[65536];
    uint8_t rule_of_channel[TARE_LOG_CHANNELS];
};
TARE_SHM_SIZE(tare_log_table, 81920);
TARE_SHM_AT(tare_log_table, modes, 0);
TARE_SHM_AT(tare_log_table, rule_of_channel, 65536);

struct tare_log_process {
    struct tare_shm_header header;
    uint64_t ring_words; /* a power of two */
    uint32_t rings, clock;
    uint64_t first[4];
    uint8_t owner[16];
    uint32_t state, rings_used, channels_used, changes, names_used;
    uint64_t unserved, states_used;
    uint8_t threads[88];
    uint32_t bell; /* 1 while the collector sleeps, see docs/formats/log-segment.md */
    uint8_t bells[124];
    uint32_t is_on, rules, ruled_changes, told_changes, number;
    uint64_t inode, device;
    uint8_t collector[88];
    uint8_t socket[128];
    uint8_t reserved[3456];
    uint8_t modes[65536];
    struct tare_log_process_channel channels[TARE_LOG_CHANNELS];
    uint8_t names[TARE_LOG_NAMES];
    uint64_t rule_settings[TARE_LOG_RULE_SETTINGS][2];
    uint8_t rule_of_channel[TARE_LOG_CHANNELS], threaded[TARE_LOG_CHANNELS];
    struct tare_log_table tables[TARE_LOG_RINGS];
    uint64_t states[TARE_LOG_STATES];
};
TARE_SHM_SIZE(tare_log_process, 128032768);
TARE_SHM_AT(tare_log_process, ring_words, 64);
TARE_SHM_AT(tare_log_process, rings, 72);
TARE_SHM_AT(tare_log_process, clock, 76);
TARE_SHM_AT(tare_log_process, first, 80);
TARE_SHM_AT(tare_log_process, state, 128);
TARE_SHM_AT(tare_log_process, rings_used, 132);
TARE_SHM_AT(tare_log_process, channels_used, 136);
TARE_SHM_AT(tare_log_process, changes, 140);
TARE_SHM_AT(tare_log_process, names_used, 144);
TARE_SHM_AT(tare_log_process, unserved, 152);
TARE_SHM_AT(tare_log_process, states_used, 160);
TARE_SHM_AT(tare_log_process, bell, 256);
TARE_SHM_AT(tare_log_process, is_on, 384);
TARE_SHM_AT(tare_log_process, rules, 388);
TARE_SHM_AT(tare_log_process, ruled_changes, 392);
TARE_SHM_AT(tare_log_process, told_changes, 396);
TARE_SHM_AT(tare_log_process, number, 400);
TARE_SHM_AT(tare_log_process, inode, 408);
TARE_SHM_AT(tare_log_process, device, 416);
TARE_SHM_AT(tare_log_process, socket, 512);
TARE_SHM_AT(tare_log_process, modes, 4096);
TARE_SHM_AT(tare_log_process, channels, 69632);
TARE_SHM_AT(tare_log_process, names, 6361088);
TARE_SHM_AT(tare_log_process, rule_settings, 10555392);
TARE_SHM_AT(tare_log_process, rule_of_channel, 10559488);
TARE_SHM_AT(tare_log_process, threaded, 10575872);
TARE_SHM_AT(tare_log_process, tables, 10592256);
TARE_SHM_AT(tare_log_process, states, 94478336);

/* What is known of a ring where its tail is `tail`. */
struct tare_log_oldest {
    uint64_t tail, lost, lost_first, lost_last;
    uint32_t tid;
    uint8_t padding[4];
    uint64_t name[2];
};
TARE_SHM_SIZE(tare_log_oldest, 56);
TARE_SHM_AT(tare_log_oldest, tail, 0);
TARE_SHM_AT(tare_log_oldest, lost, 8);
TARE_SHM_AT(tare_log_oldest, lost_first, 16);
TARE_SHM_AT(tare_log_oldest, lost_last, 24);
TARE_SHM_AT(tare_log_oldest, tid, 32);
TARE_SHM_AT(tare_log_oldest, name, 40);

/* What stands before the words of each ring. */
struct tare_log_ring {
    struct tare_shm_ring indices;
    uint32_t owner, begun;
    uint64_t lost_first, lost_last;
    uint64_t owner_name[2];
    uint8_t threads[88];
    struct tare_log_oldest overwritten[2];
    uint8_t overwriter[16];
    struct tare_log_oldest freed[2];
    uint64_t told, writing_to, writing_told;
    uint32_t ruled_thread;
    uint8_t reserved[3444];
};
TARE_SHM_SIZE(tare_log_ring, 4096);
TARE_SHM_AT(tare_log_ring, indices, 0);
TARE_SHM_AT(tare_log_ring, owner, 256);
TARE_SHM_AT(tare_log_ring, begun, 260);
TARE_SHM_AT(tare_log_ring, lost_first, 264);
TARE_SHM_AT(tare_log_ring, lost_last, 272);
TARE_SHM_AT(tare_log_ring, owner_name, 280);
TARE_SHM_AT(tare_log_ring, overwritten, 384);
TARE_SHM_AT(tare_log_ring, freed, 512);
TARE_SHM_AT(tare_log_ring, told, 624);
TARE_SHM_AT(tare_log_ring, writing_to, 632);
TARE_SHM_AT(tare_log_ring, writing_told, 640);
TARE_SHM_AT(tare_log_ring, ruled_thread, 648);

/* Records: a word of ticks, a word of kind, channel and payload, and of some kinds more. */
enum tare_log_record {
    TARE_LOG_RECORD_SHORT = 1,
    TARE_LOG_RECORD_WIDE = 2,
    TARE_LOG_RECORD_CONTROL = 3,
    TARE_LOG_RECORD_CHANNEL_SHIFT = 2,
    TARE_LOG_RECORD_PAYLOAD_SHIFT = 18,
    /* In the length of a wide record: its payload is one number. */
    TARE_LOG_RECORD_NUMBER = 1048576,
};

#endif
