// SPDX-License-Identifier: Apache-2.0
// A bare ring of bytes between two processes: it spins for some time, then sleeps by futex.
#define _GNU_SOURCE
#include <linux/futex.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static size_t ring_size = 1 << 20; /* a power of two */

struct ring {
    _Alignas(128) _Atomic uint64_t head;
    _Alignas(128) _Atomic uint64_t tail;
    _Alignas(128) _Atomic uint32_t reader, writer; /* 1: sleeps */
    _Alignas(4096) char bytes[];
};

static struct ring *ring_map(void) {
    void *place = mmap(0, sizeof(struct ring) + ring_size, PROT_READ | PROT_WRITE,
                       MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    return place == MAP_FAILED ? 0 : place;
}

static void ring_wake(_Atomic uint32_t *sleeper) {
    atomic_thread_fence(memory_order_seq_cst);
    if (atomic_load_explicit(sleeper, memory_order_relaxed) && atomic_exchange(sleeper, 0))
        syscall(SYS_futex, sleeper, FUTEX_WAKE, 1, 0, 0, 0);
}

/* Until `other` is not `value`, spinning for so many nanoseconds before it sleeps. */
static void ring_wait(_Atomic uint64_t *other, uint64_t value, _Atomic uint32_t *sleeper,
                      int spin) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    long long end = t.tv_sec * 1000000000LL + t.tv_nsec + spin;
    while (spin) {
        for (int time = 0; time < 32; time++) {
            if (atomic_load_explicit(other, memory_order_acquire) != value) return;
            __builtin_ia32_pause();
        }
        clock_gettime(CLOCK_MONOTONIC, &t);
        if (t.tv_sec * 1000000000LL + t.tv_nsec > end) break;
    }
    while (atomic_load_explicit(other, memory_order_acquire) == value) {
        atomic_store(sleeper, 1);
        atomic_thread_fence(memory_order_seq_cst);
        if (atomic_load_explicit(other, memory_order_acquire) != value) break;
        syscall(SYS_futex, sleeper, FUTEX_WAIT, 1, 0, 0, 0);
    }
}

static void ring_write(struct ring *ring, const char *bytes, size_t length, int spin) {
    while (length > 0) {
        uint64_t head = atomic_load_explicit(&ring->head, memory_order_relaxed);
        uint64_t tail = atomic_load_explicit(&ring->tail, memory_order_acquire);
        size_t room = ring_size - (head - tail), at = head & (ring_size - 1), some = ring_size - at;
        if (room == 0) {
            ring_wait(&ring->tail, tail, &ring->writer, spin);
            continue;
        }
        if (some > room) some = room;
        if (some > length) some = length;
        if (some > 1 << 16) some = 1 << 16;
        memcpy(ring->bytes + at, bytes, some);
        atomic_store_explicit(&ring->head, head + some, memory_order_release);
        ring_wake(&ring->reader);
        bytes += some, length -= some;
    }
}

static size_t ring_read(struct ring *ring, char *bytes, size_t length, int spin) {
    for (;;) {
        uint64_t tail = atomic_load_explicit(&ring->tail, memory_order_relaxed);
        uint64_t head = atomic_load_explicit(&ring->head, memory_order_acquire);
        size_t at = tail & (ring_size - 1), some = ring_size - at;
        if (head == tail) {
            ring_wait(&ring->head, head, &ring->reader, spin);
            continue;
        }
        if (some > head - tail) some = head - tail;
        if (some > length) some = length;
        memcpy(bytes, ring->bytes + at, some);
        atomic_store_explicit(&ring->tail, tail + some, memory_order_release);
        ring_wake(&ring->writer);
        return some;
    }
}
