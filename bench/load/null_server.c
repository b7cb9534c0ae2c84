// SPDX-License-Identifier: Apache-2.0
// The least that a generator can have before it: answers every request with the same bytes.
//
// null_server PORT: one thread, epoll; a request ends with an empty line and has no body.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

static const char ANSWER[] = "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nhello\n";

static void must(int ok, const char *what) {
    if (ok) return;
    perror(what);
    exit(1);
}

int main(int argc, char **argv) {
    must(argc == 2, "null_server PORT");
    int enabled = 1, listener = socket(AF_INET, SOCK_STREAM, 0), poll = epoll_create1(0);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(atoi(argv[1])),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &enabled, sizeof enabled);
    must(bind(listener, (struct sockaddr *)&address, sizeof address) == 0, "bind");
    must(listen(listener, 1024) == 0, "listen");
    struct epoll_event event = {.events = EPOLLIN, .data.fd = listener}, ready[64];
    must(epoll_ctl(poll, EPOLL_CTL_ADD, listener, &event) == 0, "epoll_ctl");
    for (;;) {
        int count = epoll_wait(poll, ready, 64, -1);
        must(count >= 0 || errno == EINTR, "epoll_wait");
        for (int number = 0; number < count; number++) {
            int fd = ready[number].data.fd;
            if (fd == listener) {
                int client = accept4(listener, 0, 0, SOCK_NONBLOCK);
                must(client >= 0, "accept4");
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
            if (write(fd, ANSWER, sizeof ANSWER - 1) < 0) close(fd);
        }
    }
}
