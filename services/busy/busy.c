// SPDX-License-Identifier: Apache-2.0
// The least service with a known busy-wait: what `tare calibrate` is tried with.
//
// busy ADDRESS PORT answers every request with the same bytes, after it has kept the CPU busy for
// as many microseconds as the variable BUSY_WAIT_US says, and has logged as many events as
// BUSY_LOG_EVENTS says (none without them). One thread: requests that come together wait for each
// other, as they would for the CPU. Build it with `make busy`.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <tare_log.h>
#include <time.h>
#include <unistd.h>

static const char ANSWER[] = "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nhello\n";
enum { MOST = 1000000 }; // a variable cannot stop the service

static void must(int ok, const char *what) {
    if (ok) return;
    perror(what);
    exit(1);
}

static uint64_t now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

static void spin(uint64_t ns) {
    // Each turn reads the clock, which no compiler may leave out.
    for (uint64_t start = now(); ns && now() - start < ns;) {
    }
}

static uint64_t number(const char *variable, const char *unit) {
    const char *text = getenv(variable);
    if (!text) return 0;
    char *end;
    errno = 0;
    unsigned long long value = strtoull(text, &end, 10);
    if (*text < '0' || *text > '9' || *end || errno || value > MOST) {
        fprintf(stderr, "%s=%s: expected whole %s from 0 to %d\n", variable, text, unit, MOST);
        exit(2);
    }
    return value;
}

static void log_events(tare_log_channel begin, tare_log_channel end, uint64_t events) {
    for (uint64_t event = 0; event < events; event++)
        tare_log(event % 2 ? end : begin, event / 2);
}

static int listener(const char *ip, const char *port) {
    int enabled = 1, fd = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(atoi(port))};
    must(inet_pton(AF_INET, ip, &address.sin_addr) == 1, ip);
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &enabled, sizeof enabled);
    must(bind(fd, (struct sockaddr *)&address, sizeof address) == 0, "bind");
    must(listen(fd, 1024) == 0, "listen");
    return fd;
}

int main(int argc, char **argv) {
    if (argc != 3) return fputs("usage: busy ADDRESS PORT\n", stderr), 2;
    uint64_t wait_ns = 1000 * number("BUSY_WAIT_US", "microseconds");
    uint64_t events = number("BUSY_LOG_EVENTS", "events");
    tare_log_channel begin = tare_log_open("work>"), end = tare_log_open("work<");
    int door = listener(argv[1], argv[2]), poll = epoll_create1(0), enabled = 1;
    struct epoll_event event = {.events = EPOLLIN, .data.fd = door}, ready[64];
    must(epoll_ctl(poll, EPOLL_CTL_ADD, door, &event) == 0, "epoll_ctl");
    for (;;) {
        int count = epoll_wait(poll, ready, 64, -1);
        must(count >= 0 || errno == EINTR, "epoll_wait");
        for (int number = 0; number < count; number++) {
            int fd = ready[number].data.fd;
            if (fd == door) {
                int client = accept4(door, NULL, NULL, SOCK_NONBLOCK);
                if (client < 0) continue; // it has gone already
                setsockopt(client, IPPROTO_TCP, TCP_NODELAY, &enabled, sizeof enabled);
                event = (struct epoll_event){.events = EPOLLIN, .data.fd = client};
                must(epoll_ctl(poll, EPOLL_CTL_ADD, client, &event) == 0, "epoll_ctl");
                continue;
            }
            char request[4096];
            ssize_t length = read(fd, request, sizeof request);
            if (length <= 0) {
                close(fd);
                continue;
            }
            // Generators send a request in one piece; what is in two parts waits for its end.
            if (length < 4 || memcmp(request + length - 4, "\r\n\r\n", 4) != 0) continue;
            log_events(begin, end, events);
            spin(wait_ns);
            if (send(fd, ANSWER, sizeof ANSWER - 1, MSG_NOSIGNAL) < 0) close(fd);
        }
    }
}
