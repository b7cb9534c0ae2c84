/* SPDX-License-Identifier: Apache-2.0 */
/* The connection that random calls use, and what a correct kernel has in it: how many bytes each end
 * has sent and read, and how each descriptor is set. The next call depends on this model and the
 * seed alone, never on a result, so a run with a link makes the same calls. */
#include "../calls/both_ends.h"
#include <netinet/tcp.h>
#include <stdarg.h>
#include <stdint.h>

enum {
    COPIES = 4,
    SETTLED = 40 << 10, /* TCP has this number of unread bytes at the receiver at once */
    MOST = 400 << 10,   /* TCP accepts this number of unread bytes without waiting */
    LARGEST = 200000,
};

static struct end {
    int fds[COPIES], count;
    int returns;   /* O_NONBLOCK */
    int is_timed;  /* SO_RCVTIMEO */
    int has_ended; /* SHUT_WR */
    int is_deaf;   /* SHUT_RD */
    int is_flooded;
    uint64_t sent, read;
} ends[2];

static uint64_t chance;
static long number; /* of the operation */

static uint64_t draw(void) {
    chance ^= chance << 13;
    chance ^= chance >> 7;
    chance ^= chance << 17;
    return chance * 0x2545F4914F6CDD1Dull >> 16;
}

static long below(long limit) { return limit > 0 ? (long)(draw() % (uint64_t)limit) : 0; }

/* Mostly small. */
static long size(long most) {
    static const long classes[] = {1, 16, 300, 5000, 40000, LARGEST};
    long limit = classes[below(6)];
    return below((limit < most ? limit : most) + 1);
}

static int descriptor(int end) { return ends[end].fds[below(ends[end].count)]; }

static long unread(int end) { return (long)(ends[1 - end].sent - ends[end].read); }

/* Whether the receiver can read all unread bytes now. Behind more than its window, the kernel may keep
 * bytes at the sender until all others were read. */
static int is_settled(int end) {
    if (unread(end) > SETTLED) ends[end].is_flooded = 1;
    if (unread(end) == 0) ends[end].is_flooded = 0;
    return !ends[end].is_flooded;
}

/* What `end` may send. Behind SHUT_RD, a call that reads cannot wait for bytes. */
static long room(int end) {
    long most = ends[1 - end].is_deaf ? SETTLED : MOST;
    return most > unread(1 - end) ? most - unread(1 - end) : 0;
}

/* A call that reads returns at once. */
static int never_waits(int end) {
    return unread(end) > 0 || ends[1 - end].has_ended || ends[end].is_deaf || ends[end].returns ||
           ends[end].is_timed;
}

static unsigned char at(int end, uint64_t place) {
    return (unsigned char)((place + 1 + (uint64_t)end * 77 + (uint64_t)connections * 1009) *
                               0x9E3779B97F4A7C15ull >> 56);
}

static void fill(int end, unsigned char *text, long length) {
    for (long place = 0; place < length; place++) text[place] = at(end, ends[end].sent + place);
}

/* What `end` has read: the bytes that the other end sent. */
static const char *verdict(int end, const unsigned char *text, long length) {
    for (long place = 0; place < length; place++)
        if (text[place] != at(1 - end, ends[end].read + place)) return " WRONG BYTES";
    return "";
}

static void say(const char *operation, const char *format, ...) {
    int error = errno;
    va_list values;
    va_start(values, format);
    printf("%ld %s ", number, operation);
    errno = error;
    vprintf(format, values);
    putchar('\n');
    va_end(values);
}

static const char *error_of(long result) { return result < 0 ? name(errno) : ""; }

/* Waits until the receiver could read all bytes. */
static void settle(int end) {
    if (!is_settled(end)) return;
    int waiting = -1;
    for (long times = 0; times < 60000; times++) {
        if (ioctl(ends[end].fds[0], FIONREAD, &waiting) || waiting == unread(end)) return;
        if (times > 50) usleep(1000);
        else sched_yield();
    }
    say("settle", "end=%d FIONREAD=%d unread=%ld: STUCK", end, waiting, unread(end));
    exit(3);
}

static void has_sent(int end, long result) {
    if (result > 0) ends[end].sent += result;
    settle(1 - end);
}

static void await(int end, short events) {
    struct pollfd place = {ends[end].fds[0], events, 0};
    poll(&place, 1, SECONDS * 1000);
}

/* Reads this number of unread bytes, however many calls that takes. */
static long take(int end, int fd, long length) {
    static unsigned char text[LARGEST];
    long left = length;
    while (left > 0) {
        long got = recv(fd, text, left < LARGEST ? left : LARGEST, MSG_DONTWAIT);
        if (got < 0 && errno == EAGAIN) {
            struct pollfd place = {fd, POLLIN, 0};
            poll(&place, 1, SECONDS * 1000);
            continue;
        }
        if (got <= 0) {
            say("take", "end=%d left=%ld = %ld %s", end, left, got, error_of(got));
            exit(3);
        }
        if (*verdict(end, text, got)) say("take", "end=%d at=%lu WRONG BYTES", end, ends[end].read);
        ends[end].read += got;
        left -= got;
    }
    return length;
}

static void begin_connection(void) {
    int on = 1;
    connect_both(1);
    setsockopt(near, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    setsockopt(far, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    ends[0] = (struct end){.fds = {near}, .count = 1};
    ends[1] = (struct end){.fds = {far}, .count = 1};
}

static void close_end(int end) {
    while (ends[end].count > 0) {
        int fd = ends[end].fds[--ends[end].count], result = close(fd);
        say("close", "fd=%d = %d", fd, result);
    }
}
