// SPDX-License-Identifier: Apache-2.0
// Connections that are opened and closed, timed one by one.
//
// connects serve: prints the port that it listens at, and echoes what it gets, until its standard
// input ends.
// connects open PORT EXCHANGES FILE: for each line "N" on standard input opens N connections, exchanges
// a byte on each so many times and closes it; appends the nanoseconds of each, as 32-bit numbers, to
// FILE, and prints their sum.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

static void must(int ok, const char *what) {
    if (ok) return;
    perror(what);
    exit(1);
}

static long long now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static struct sockaddr_in address = {.sin_family = AF_INET};

static void serve(void) {
    socklen_t length = sizeof address;
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    must(bind(listener, (void *)&address, length) == 0 && listen(listener, 128) == 0 &&
             getsockname(listener, (void *)&address, &length) == 0,
         "listen");
    printf("%d\n", ntohs(address.sin_port));
    fflush(stdout);
    for (;;) {
        struct pollfd places[] = {{0, POLLIN, 0}, {listener, POLLIN, 0}};
        poll(places, 2, -1);
        if (places[0].revents) exit(0);
        int connection = accept(listener, 0, 0);
        char byte;
        while (read(connection, &byte, 1) == 1 && write(connection, &byte, 1) == 1) {}
        close(connection);
    }
}

/* Of different addresses in turn: a closed connection keeps its port for a minute. */
static uint32_t open_connection(int exchanges) {
    static uint32_t count;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK + 256 + count++ % 250);
    long long begin = now();
    char byte = 'x';
    int connection = socket(AF_INET, SOCK_STREAM, 0);
    must(connect(connection, (void *)&address, sizeof address) == 0, "connect");
    for (int done = 0; done < exchanges; done++)
        must(write(connection, &byte, 1) == 1 && read(connection, &byte, 1) == 1, "exchange");
    close(connection);
    return (uint32_t)(now() - begin);
}

int main(int count, char **words) {
    if (count == 2 && strcmp(words[1], "serve") == 0) serve();
    must(count == 5, "connects serve | connects open PORT EXCHANGES FILE");
    address.sin_port = htons(atoi(words[2]));
    FILE *file = fopen(words[4], "wb");
    must(file != 0, words[4]);
    long number;
    while (scanf("%ld", &number) == 1) {
        long long sum = 0;
        for (long place = 0; place < number; place++) {
            uint32_t took = open_connection(atoi(words[3]));
            must(fwrite(&took, sizeof took, 1, file) == 1, words[4]);
            sum += took;
        }
        printf("%lld\n", sum);
        fflush(stdout);
    }
    must(fclose(file) == 0, words[4]);
    return 0;
}
