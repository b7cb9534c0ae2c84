// SPDX-License-Identifier: Apache-2.0
// Two processes that exchange messages over a connection, timed in turns.
//
// exchange tcp|unix|pipe|fifo|ring[:BYTES] round|stream SIZE block|epoll CPU CPU: for each line "N"
// on standard input makes N round trips of SIZE bytes, or sends N messages of SIZE bytes and waits
// for the answer to the last one; prints the nanoseconds that this took. `ring` is the limit: a bare ring of bytes in
// shared memory (ring.c), without sockets.
#define _GNU_SOURCE
#include "ring.c"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>

static void must(int ok, const char *what) {
    if (ok) return;
    perror(what);
    _exit(1);
}

static long long now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static void run_on(int cpu) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    must(sched_setaffinity(0, sizeof set, &set) == 0, "sched_setaffinity");
}

static struct ring *out, *in;
static int connection = -1, reader = -1, writer = -1, set = -1, spin;

static void wait_for(uint32_t events) {
    struct epoll_event event;
    (void)events;
    while (epoll_wait(set, &event, 1, -1) < 1) {}
}

static void send_all(const char *bytes, size_t length) {
    if (out) {
        ring_write(out, bytes, length, spin);
        return;
    }
    while (length > 0) {
        ssize_t sent = write(writer, bytes, length);
        if (sent < 0 && set >= 0) {
            struct epoll_event event = {.events = EPOLLOUT};
            epoll_ctl(set, EPOLL_CTL_MOD, connection, &event);
            wait_for(EPOLLOUT);
            event.events = EPOLLIN;
            epoll_ctl(set, EPOLL_CTL_MOD, connection, &event);
            continue;
        }
        must(sent > 0, "write");
        bytes += sent, length -= sent;
    }
}

/* The number of bytes, at least one; 0 at the end. */
static size_t receive_some(char *bytes, size_t length) {
    if (in) return ring_read(in, bytes, length, spin);
    for (;;) {
        if (set >= 0) wait_for(EPOLLIN);
        ssize_t got = read(reader, bytes, length);
        if (got >= 0) return got;
        must(set >= 0, "read");
    }
}

static int receive_all(char *bytes, size_t length) {
    while (length > 0) {
        size_t got = receive_some(bytes, length);
        if (got == 0) return 0;
        bytes += got, length -= got;
    }
    return 1;
}

/* Both ends of a named pipe, whose name is gone. */
static int fifo(int ends[2]) {
    char folder[] = "/tmp/exchange-XXXXXX", path[64];
    must(mkdtemp(folder) != 0, "mkdtemp");
    snprintf(path, sizeof path, "%s/fifo", folder);
    must(mkfifo(path, 0600) == 0, "mkfifo");
    int both = open(path, O_RDWR);
    ends[0] = open(path, O_RDONLY), ends[1] = open(path, O_WRONLY);
    unlink(path), rmdir(folder), close(both);
    return both < 0 || ends[0] < 0 || ends[1] < 0 ? -1 : 0;
}

static void watch(void) {
    set = epoll_create1(0);
    struct epoll_event event = {.events = EPOLLIN};
    must(epoll_ctl(set, EPOLL_CTL_ADD, connection, &event) == 0, "epoll_ctl");
    must(fcntl(connection, F_SETFL, O_NONBLOCK) == 0, "fcntl");
}

/* Answers each message by itself, or by its first byte where they are streams. */
static void serve(size_t size, int is_stream, char *buffer) {
    long number;
    for (;;) {
        if (!receive_all((char *)&number, sizeof number)) _exit(0);
        for (long message = 0; message < number; message++) {
            if (!receive_all(buffer, size)) _exit(0);
            if (!is_stream) send_all(buffer, size);
        }
        if (is_stream) send_all(buffer, 1);
    }
}

int main(int argc, char **argv) {
    must(argc == 7, "exchange tcp|unix|pipe|fifo|ring round|stream SIZE block|epoll CPU CPU");
    int is_stream = strcmp(argv[2], "stream") == 0, is_epoll = strcmp(argv[4], "epoll") == 0;
    size_t size = strtoul(argv[3], 0, 10);
    int cpus[2] = {atoi(argv[5]), atoi(argv[6])};
    char *buffer = malloc(size), *bytes = malloc(size);
    memset(buffer, 1, size), memset(bytes, 2, size);
    spin = cpus[0] == cpus[1] ? 0 : 20000;

    struct ring *rings[2] = {0, 0};
    int listener = -1;
    struct sockaddr_in internet = {.sin_family = AF_INET,
                                   .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct sockaddr_un local = {.sun_family = AF_UNIX};
    int is_tcp = strcmp(argv[1], "tcp") == 0;
    struct sockaddr *address = is_tcp ? (void *)&internet : (void *)&local;
    socklen_t length = is_tcp ? sizeof internet : sizeof(sa_family_t);
    int pipes[2][2] = {{-1, -1}, {-1, -1}};
    if (strncmp(argv[1], "ring", 4) == 0) {
        if (argv[1][4] == ':') ring_size = strtoul(argv[1] + 5, 0, 10);
        rings[0] = ring_map(), rings[1] = ring_map();
        must(rings[0] && rings[1], "mmap");
    } else if (strcmp(argv[1], "pipe") == 0) {
        must(pipe(pipes[0]) == 0 && pipe(pipes[1]) == 0, "pipe");
    } else if (strcmp(argv[1], "fifo") == 0) {
        must(fifo(pipes[0]) == 0 && fifo(pipes[1]) == 0, "fifo");
    } else {
        listener = socket(address->sa_family, SOCK_STREAM, 0);
        must(bind(listener, address, length) == 0, "bind");
        must(listen(listener, 1) == 0, "listen");
        length = is_tcp ? sizeof internet : sizeof local;
        must(getsockname(listener, address, &length) == 0, "getsockname");
    }
    int child = fork();
    must(child >= 0, "fork");
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        run_on(cpus[1]);
        in = rings[0], out = rings[1], reader = pipes[0][0], writer = pipes[1][1];
        if (listener >= 0) {
            connection = accept(listener, 0, 0);
            must(connection >= 0, "accept");
        }
    } else {
        run_on(cpus[0]);
        out = rings[0], in = rings[1], writer = pipes[0][1], reader = pipes[1][0];
        if (listener >= 0) {
            connection = socket(address->sa_family, SOCK_STREAM, 0);
            must(connect(connection, address, length) == 0, "connect");
        }
    }
    /* A process that ends closes its end of a pipe. */
    if (pipes[0][0] >= 0)
        for (int way = 0; way < 2; way++) close(pipes[way][(way == 0) == (child == 0)]);
    if (connection >= 0) reader = writer = connection;
    int enabled = 1;
    if (is_tcp) setsockopt(connection, IPPROTO_TCP, TCP_NODELAY, &enabled, sizeof enabled);
    if (is_epoll && connection >= 0) watch();
    if (child == 0) serve(size, is_stream, buffer);

    long number;
    while (scanf("%ld", &number) == 1) {
        send_all((char *)&number, sizeof number);
        long long start = now();
        for (long count = 0; count < number; count++) {
            send_all(bytes, size);
            if (!is_stream) must(receive_all(buffer, size), "the server has ended");
        }
        if (is_stream) must(receive_all(buffer, 1), "the server has ended");
        printf("%lld\n", now() - start);
        fflush(stdout);
    }
    return 0;
}
