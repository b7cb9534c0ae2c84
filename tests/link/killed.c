/* SPDX-License-Identifier: Apache-2.0 */
/* One process sends a stream until it is killed, or receives it; the other one, which survives, checks
 * the bytes. Each prints its process ID first.
 *
 * killed serve ROLE WAIT FILE UNREAD: listens, prints the port.
 * killed connect ROLE WAIT FILE UNREAD PORT.
 * ROLE is sends or receives, WAIT is how it waits: call, poll or epoll. FILE has the number of bytes
 * that the sender's calls accepted, and behind it that of the receiver. UNREAD is how many bytes the
 * sender lets wait for the receiver; 0: as many as its calls accept. If it is negative, the receiver
 * stops behind `STOP` bytes: it sets the third number of FILE, and reads on when the fourth is set.
 * The sender then sends as many bytes as its calls accept, of which TCP has room for few. With -2, the
 * receiver gives its connection back to TCP before it stops.
 * The survivor prints, at the end: bytes, what it saw, and the time (CLOCK_MONOTONIC, nanoseconds). */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { PIECE = 10000, SECONDS = 300, CYCLE = 251 * PIECE, STOP = 5000000, IN_RING = 50000 };

static int set;
static long unread;
static const char *wait_by;

static void fail(const char *what) {
    perror(what);
    exit(2);
}

/* Bytes of any place in the stream are at `place % CYCLE`. */
static unsigned char stream[CYCLE + PIECE];

static void make_stream(void) {
    for (long place = 0; place < CYCLE + PIECE; place++) {
        long at = place % CYCLE;
        stream[place] = (unsigned char)(at * 7 + at / 251);
    }
}

static void wait_until(int fd, short events) {
    if (!strcmp(wait_by, "poll")) {
        struct pollfd place = {fd, events, 0};
        if (poll(&place, 1, SECONDS * 1000) != 1) fail("poll");
    } else if (!strcmp(wait_by, "epoll")) {
        struct epoll_event event;
        if (epoll_wait(set, &event, 1, SECONDS * 1000) != 1) fail("epoll_wait");
    }
}

/* Both return what the last call did not do: 0 at the end of the stream, or an error. */
static int sends(int fd, _Atomic long *counts) {
    for (;;) {
        long most = unread >= 0 ? unread : counts[0] < STOP ? IN_RING : 0;
        while (most && counts[0] + PIECE - counts[1] > most) usleep(10);
        long done = send(fd, stream + counts[0] % CYCLE, PIECE, MSG_NOSIGNAL);
        if (done > 0) counts[0] += done;
        else if (errno == EAGAIN) wait_until(fd, POLLOUT);
        else return errno;
    }
}

static int receives(int fd, _Atomic long *counts) {
    static unsigned char got[PIECE];
    for (;;) {
        long more = recv(fd, got, sizeof got, 0);
        if (more == 0) return 0;
        if (more < 0 && errno != EAGAIN) return errno;
        if (more < 0) {
            wait_until(fd, POLLIN);
            continue;
        }
        if (memcmp(got, stream + counts[1] % CYCLE, more)) {
            fprintf(stderr, "wrong bytes behind %ld\n", counts[1]);
            exit(3);
        }
        counts[1] += more;
        if (unread < 0 && counts[1] >= STOP && !counts[2]) {
            if (unread == -2) dup2(fd, 0);
            counts[2] = 1;
            while (!counts[3]) usleep(10);
        }
    }
}

static void give_little_room(int fd) {
    int bytes = 8192;
    setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof bytes);
    setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof bytes);
}

static int connected(int serves, const char *port) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (unread < 0) give_little_room(fd);
    if (!serves) {
        address.sin_port = htons(atoi(port));
        if (connect(fd, (void *)&address, length)) fail("connect");
        return fd;
    }
    if (bind(fd, (void *)&address, length) || listen(fd, 1) ||
        getsockname(fd, (void *)&address, &length))
        fail("listen");
    printf("%d\n", ntohs(address.sin_port));
    int accepted = accept4(fd, NULL, NULL, SOCK_CLOEXEC);
    close(fd);
    return accepted;
}

int main(int count, char **words) {
    if (count < 6) return 2;
    int serves = !strcmp(words[1], "serve"), is_sender = !strcmp(words[2], "sends");
    setvbuf(stdout, NULL, _IOLBF, 0);
    alarm(SECONDS);
    make_stream();
    int file = open(words[4], O_RDWR | O_CLOEXEC);
    _Atomic long *counts = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (counts == MAP_FAILED) fail("mmap");
    printf("%d\n", (int)getpid());
    wait_by = words[3], unread = atol(words[5]);
    int fd = connected(serves, words[count - 1]);
    char byte = 'w';
    for (int round = 0; round < 16; round++)
        if ((round + serves) % 2 ? read(fd, &byte, 1) != 1 : write(fd, &byte, 1) != 1) fail("warm");
    if (strcmp(wait_by, "call")) {
        struct epoll_event event = {.events = is_sender ? EPOLLOUT : EPOLLIN};
        set = epoll_create1(EPOLL_CLOEXEC);
        fcntl(fd, F_SETFL, O_NONBLOCK);
        if (!strcmp(wait_by, "epoll") && epoll_ctl(set, EPOLL_CTL_ADD, fd, &event)) fail("epoll_ctl");
    }
    int error = is_sender ? sends(fd, counts) : receives(fd, counts);
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    printf("%ld %s %ld\n", counts[!is_sender], error ? strerrorname_np(error) : "end",
           now.tv_sec * 1000000000L + now.tv_nsec);
    return 0;
}
