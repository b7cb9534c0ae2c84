/* SPDX-License-Identifier: Apache-2.0 */
/* mutations SEED NUMBER: a hostile other end, which changes anything in the counters of a link
 * between the calls that a program makes there. No call may crash, wait, write outside its buffer or
 * return bytes that are not the ring's or TCP's. */
#include "calls/both_ends.h"
#include <stdint.h>

enum {
    HEADER = 64,
    DIRECTIONS = 128, /* behind header and services: layout.rs */
    REST = DIRECTIONS + 2 * 512,
    COUNTERS = REST + 16 + 2 * 136, /* namespaces, holders */
    PER_LINK = 64,
    LARGEST = 100000,
    LOWEST = 64, /* bytes that are sent, apart from 0: those of a new ring */
    HIGHEST = 'w', /* which both_ends.h sends */
};

/* In a direction (direction.rs): a living thread that has a lock or is between two of its steps is
 * waited for, so a program can make another one wait. */
static const unsigned WAITED_FOR[] = {28, 264, 272};

static uint64_t chance;

static uint64_t draw(void) {
    chance ^= chance << 13;
    chance ^= chance >> 7;
    chance ^= chance << 17;
    return chance * 0x2545F4914F6CDD1Dull >> 16;
}

static long below(long limit) { return (long)(draw() % (uint64_t)limit); }

static long size(void) {
    static const long classes[] = {1, 16, 300, 5000, LARGEST};
    return below(classes[below(5)] + 1);
}

/* The counters of the link, as this process has mapped them; NULL if there is none. */
static unsigned char *counters(void) {
    FILE *file = fopen("/proc/self/maps", "re");
    char line[512];
    unsigned char *found = NULL;
    while (!found && file && fgets(line, sizeof line, file)) {
        unsigned long begin, offset;
        if (strstr(line, "/memfd:tare-link ") &&
            sscanf(line, "%lx-%*x %*s %lx", &begin, &offset) == 2 && offset == 0)
            found = (unsigned char *)begin;
    }
    if (file) fclose(file);
    return found;
}

static int is_waited_for(unsigned at) {
    if (at < DIRECTIONS || at >= REST) return 0;
    for (unsigned number = 0; number < sizeof WAITED_FOR / sizeof *WAITED_FOR; number++)
        if ((at - DIRECTIONS) % 512 == WAITED_FOR[number]) return 1;
    return 0;
}

/* Reads or writes bytes of the link; 0 if it has just ended: the library then has taken the mapping
 * away. */
static int copy(int writes, unsigned char *place, void *bytes, size_t length) {
    struct iovec own = {bytes, length}, there = {place, length};
    long done = writes ? process_vm_writev(getpid(), &own, 1, &there, 1, 0)
                       : process_vm_readv(getpid(), &own, 1, &there, 1, 0);
    return done == (long)length;
}

static void change(unsigned char *link) {
    unsigned at;
    do at = HEADER + 4 * (unsigned)below((COUNTERS - HEADER) / 4);
    while (is_waited_for(at));
    uint32_t half;
    if (!copy(0, link + at, &half, sizeof half)) return;
    switch (below(8)) {
    case 0: half = (uint32_t)draw(); break;
    case 1: half ^= 1u << below(32); break;
    case 2: half += (uint32_t)below(64) - 32; break;
    case 3: half = (uint32_t)below(4); break;
    case 4: half = UINT32_MAX; break;
    default: { /* Of both halves, but for those that are waited for. */
        uint64_t word;
        unsigned char *place = link + (at & ~7u);
        if (is_waited_for(at & ~7u) || is_waited_for((at & ~7u) | 4)) return;
        if (!copy(0, place, &word, sizeof word)) return;
        word += draw() % (4 << 20) - (2 << 20);
        copy(1, place, &word, sizeof word);
        return;
    }
    }
    copy(1, link + at, &half, sizeof half);
}

/* Bytes behind a buffer that no call may change. */
static const char GUARD[] = "not to be changed";

static unsigned char *buffer(long length) {
    unsigned char *bytes = malloc(length + sizeof GUARD);
    for (long place = 0; place < length; place++) bytes[place] = LOWEST + below(1 + HIGHEST - LOWEST);
    memcpy(bytes + length, GUARD, sizeof GUARD);
    return bytes;
}

static void check(unsigned char *bytes, long length, long got) {
    if (memcmp(bytes + length, GUARD, sizeof GUARD) || got > length) {
        printf("%ld of %ld bytes, and behind them %.17s\n", got, length, bytes + length);
        exit(3);
    }
    for (long place = 0; place < got; place++)
        if (bytes[place] && (bytes[place] < LOWEST || bytes[place] > HIGHEST)) {
            printf("byte %ld of %ld is %d\n", place, got, bytes[place]);
            exit(4);
        }
    free(bytes);
}

static void makes_call(int fd, int set) {
    static const int flags[] = {0, 0, 0, MSG_PEEK, MSG_WAITALL, MSG_TRUNC};
    long length = size();
    switch (below(16)) {
    case 0 ... 3: {
        unsigned char *bytes = buffer(length);
        long sent = send(fd, bytes, length, MSG_NOSIGNAL | (below(2) ? MSG_MORE : 0));
        check(bytes, length, sent);
        break;
    }
    case 4: {
        unsigned char *bytes = buffer(length);
        long half = length / 2;
        struct iovec parts[] = {{bytes, half}, {bytes + half, length - half}};
        check(bytes, length, writev(fd, parts, 2));
        break;
    }
    case 5 ... 8: {
        unsigned char *bytes = buffer(length);
        int flag = flags[below(6)];
        long got = recv(fd, bytes, length, MSG_DONTWAIT | flag);
        check(bytes, length, flag == MSG_TRUNC ? 0 : got);
        break;
    }
    case 9: {
        unsigned char *bytes = buffer(length);
        long half = length / 2;
        struct iovec parts[] = {{bytes, half}, {bytes + half, length - half}};
        check(bytes, length, readv(fd, parts, 2));
        break;
    }
    case 10: {
        int waiting;
        ioctl(fd, FIONREAD, &waiting);
        break;
    }
    case 11: {
        struct pollfd places[] = {{near, POLLIN | POLLOUT, 0}, {far, POLLIN, 0}};
        poll(places, 2, 0);
        break;
    }
    case 12 ... 13: {
        struct epoll_event events[4];
        epoll_wait(set, events, 4, 0);
        break;
    }
    case 14: {
        struct epoll_event event = {EPOLLIN, {.fd = fd}};
        if (below(2)) event.events |= EPOLLET;
        if (below(2)) event.events |= EPOLLOUT;
        if (below(4) || epoll_ctl(set, EPOLL_CTL_DEL, fd, NULL))
            epoll_ctl(set, EPOLL_CTL_MOD, fd, &event);
        else epoll_ctl(set, EPOLL_CTL_ADD, fd, &event);
        break;
    }
    default:
        if (below(20) == 0) shutdown(fd, below(3));
    }
}

static int begin_link(void) {
    int set = epoll_create1(EPOLL_CLOEXEC);
    connect_both(0);
    for (int end = 0; end < 2; end++) {
        int fd = end ? far : near;
        struct epoll_event event = {EPOLLIN, {.fd = fd}};
        if (fcntl(fd, F_SETFL, O_NONBLOCK) || epoll_ctl(set, EPOLL_CTL_ADD, fd, &event)) exit(2);
    }
    return set;
}

int main(int count, char **words) {
    if (count != 3) return 2;
    chance = strtoull(words[1], NULL, 10) * 0x9E3779B97F4A7C15ull + 1;
    long most = atol(words[2]), links = 0, resets = 0;
    signal(SIGPIPE, SIG_IGN);
    for (long number = 0; number < most;) {
        alarm(SECONDS); /* A call that does not return ends the program. */
        int set = begin_link();
        unsigned char *link = counters();
        if (link) links++;
        for (int times = 0; link && times < PER_LINK; times++, number++) {
            change(link);
            makes_call(below(2) ? near : far, set);
            /* A connection that was reset has no address any more. */
            struct sockaddr_in address;
            socklen_t length = sizeof address;
            if (getpeername(near, (void *)&address, &length)) {
                resets++;
                break;
            }
        }
        close_both();
        close(set);
    }
    printf("%ld links, %ld resets\n", links, resets);
    return links < most / PER_LINK || resets == 0;
}
