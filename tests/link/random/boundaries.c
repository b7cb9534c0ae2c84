/* SPDX-License-Identifier: Apache-2.0 */
/* boundaries SEED BYTES MESSAGES: streams that change between ring and TCP behind every byte, and
 * in threads. Without a link nothing changes, and the lines are the same.
 *
 * A call that sends no bytes is the kernel's, so it takes a link back to TCP, with the bytes of the
 * ring that were not read. The next call that sends uses the ring again if the receiver has read
 * behind that change. */
#include "connection.h"

static void sends(int end, long length) {
    unsigned char text[64];
    fill(end, text, length);
    long result = send(ends[end].fds[0], text, length, MSG_NOSIGNAL);
    say("send", "end=%d %ld = %ld %s", end, length, result, error_of(result));
    has_sent(end, result);
}

static void goes_to_tcp(int end) {
    long result = send(ends[end].fds[0], "", 0, MSG_NOSIGNAL);
    say("change", "end=%d = %ld %s", end, result, error_of(result));
    settle(1 - end);
}

/* Reads exactly this number of bytes, which are there, in one of several ways. */
static void reads(int end, long length) {
    static const char *const names[] = {"recv", "MSG_PEEK", "readv", "MSG_WAITALL", "one_by_one"};
    unsigned char text[64];
    struct iovec parts[64];
    int fd = ends[end].fds[0], way = below(5);
    long result = 0;
    if (length == 0) return;
    for (long place = 0; place < length; place++) parts[place] = (struct iovec){text + place, 1};
    switch (way) {
    case 1:
        result = recv(fd, text, length, MSG_PEEK);
        say("peek", "end=%d %ld = %ld%s", end, length, result, verdict(end, text, result));
        /* fall through */
    case 0: result = recv(fd, text, length, 0); break;
    case 2: result = readv(fd, parts, length); break;
    case 3: result = recv(fd, text, length, MSG_WAITALL); break;
    default:
        for (; result < length; result++)
            if (recv(fd, text + result, 1, 0) != 1) break;
    }
    say(names[way], "end=%d %ld = %ld%s", end, length, result, verdict(end, text, result));
    if (result > 0) ends[end].read += result;
    settle(end);
}

/* Some bytes through the ring, of which some are read; the change; some through TCP, of which some
 * are read; and the rest. */
static void changes_behind(int end, long ring, long read, long tcp, long more, long rest) {
    if (ring) sends(end, ring);
    reads(1 - end, read);
    goes_to_tcp(end);
    if (tcp) sends(end, tcp);
    reads(1 - end, more);
    if (rest) sends(end, rest);
    reads(1 - end, unread(1 - end));
    number++;
}

/* Until the connection is linked: both ends send and receive. */
static void begins_link(void) {
    begin_connection();
    for (int each = 0; each < 4; each++)
        for (int end = 0; end < 2; end++) sends(end, 1), reads(1 - end, 1);
}

struct way {
    int end;
    long messages;
    uint64_t chance;
    pthread_t thread;
};

static long random_below(struct way *way, long limit) {
    way->chance ^= way->chance << 13;
    way->chance ^= way->chance >> 7;
    way->chance ^= way->chance << 17;
    return (long)((way->chance * 0x2545F4914F6CDD1Dull >> 16) % (uint64_t)limit);
}

static long random_size(struct way *way) {
    static const long most[] = {1, 7, 300, 5000, LARGEST};
    return 1 + random_below(way, most[random_below(way, 5)]);
}

static void *sends_all(void *of) {
    struct way *way = of;
    unsigned char *text = malloc(LARGEST);
    for (long message = 0; message < way->messages; message++) {
        long length = random_size(way), done = 0;
        int fd = ends[way->end].fds[0];
        fill(way->end, text, length);
        while (done < length) {
            long part = 1 + random_below(way, length - done);
            if (random_below(way, 3) == 0 && send(fd, "", 0, MSG_NOSIGNAL)) exit(4);
            part = send(fd, text + done, part, MSG_NOSIGNAL);
            if (part <= 0) exit(5);
            done += part;
        }
        ends[way->end].sent += length;
        /* What was read entirely, a ring can follow. */
        while (message % 4 && __atomic_load_n(&ends[1 - way->end].read, __ATOMIC_RELAXED) <
                                  ends[way->end].sent)
            sched_yield();
    }
    if (shutdown(ends[way->end].fds[0], SHUT_WR)) exit(6);
    free(text);
    return NULL;
}

static void *reads_all(void *of) {
    static const int flags[] = {0, 0, 0, MSG_DONTWAIT, MSG_PEEK};
    struct way *way = of;
    unsigned char *text = malloc(LARGEST);
    for (long got = 1; got;) {
        int how = flags[random_below(way, 5)];
        got = recv(ends[way->end].fds[0], text, random_size(way), how);
        if (got < 0 && errno == EAGAIN) {
            got = 1;
            await(way->end, POLLIN);
            continue;
        }
        if (got < 0 || *verdict(way->end, text, got)) {
            say("thread", "end=%d at=%lu = %ld %s WRONG", way->end, ends[way->end].read, got,
                error_of(got));
            exit(7);
        }
        if (how != MSG_PEEK) __atomic_fetch_add(&ends[way->end].read, got, __ATOMIC_RELAXED);
    }
    free(text);
    return NULL;
}

/* Both ends send and receive at the same time, a thread each. */
static void in_threads(long messages) {
    struct way ways[4];
    begins_link();
    for (int each = 0; each < 4; each++)
        ways[each] = (struct way){each / 2, messages, draw() | 1};
    for (int each = 0; each < 4; each++)
        pthread_create(&ways[each].thread, NULL, each % 2 ? reads_all : sends_all, &ways[each]);
    for (int each = 0; each < 4; each++) pthread_join(ways[each].thread, NULL);
    for (int end = 0; end < 2; end++)
        say("threads", "end=%d sent=%lu read=%lu", end, ends[end].sent, ends[end].read);
    close_end(0), close_end(1);
}

int main(int count, char **words) {
    begin();
    if (count != 4) return 2;
    chance = strtoull(words[1], NULL, 10) * 0x9E3779B97F4A7C15ull + 1;
    long bytes = atol(words[2]), messages = atol(words[3]);
    for (int end = 0; end < 2; end++) {
        begins_link();
        for (long ring = 0; ring <= bytes; ring++)
            for (long read = 0; read <= ring; read++)
                for (long tcp = 0; tcp <= bytes - ring; tcp++)
                    for (long more = 0; more <= ring - read + tcp; more++)
                        changes_behind(end, ring, read, tcp, more, bytes - ring - tcp);
        close_end(0), close_end(1);
    }
    in_threads(messages);
    end();
}
