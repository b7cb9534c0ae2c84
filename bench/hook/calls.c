// SPDX-License-Identifier: Apache-2.0
// Reads of SIZE bytes from a file or a TCP socket, or writes to one, timed in turns.
//
// calls file|socket|sent SIZE TEXT: for each line "N" on standard input reads (sent: writes) N
// times, and prints the nanoseconds that these calls alone took. The bytes are those of the file
// TEXT, again and again: they are never twice the same until the text is through.
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { AHEAD = 256 * 1024 };  // bytes that wait in the socket at most

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

static void connect_pair(int pair[2]) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;
    int listener = socket(AF_INET, SOCK_STREAM, 0), size = 4 * AHEAD;
    must(setsockopt(listener, SOL_SOCKET, SO_RCVBUF, &size, sizeof size) == 0, "SO_RCVBUF");
    must(bind(listener, (struct sockaddr *)&address, length) == 0, "bind");
    must(listen(listener, 1) == 0, "listen");
    must(getsockname(listener, (struct sockaddr *)&address, &length) == 0, "getsockname");
    pair[1] = socket(AF_INET, SOCK_STREAM, 0);
    must(setsockopt(pair[1], SOL_SOCKET, SO_SNDBUF, &size, sizeof size) == 0, "SO_SNDBUF");
    must(connect(pair[1], (struct sockaddr *)&address, length) == 0, "connect");
    pair[0] = accept(listener, 0, 0);
    must(pair[0] >= 0, "accept");
    close(listener);
}

static void read_all(int from, char *buffer, size_t size, size_t times) {
    for (size_t call = 0; call < times; call++)
        for (size_t got = 0; got < size;) {
            ssize_t count = read(from, buffer + got, size - got);
            must(count > 0, "read");
            got += count;
        }
}

static void write_all(int to, const char *bytes, size_t size, size_t times) {
    for (size_t call = 0; call < times; call++)
        must(write(to, bytes + call * size, size) == (ssize_t)size, "write");
}

int main(int argc, char **argv) {
    must(argc == 4, "calls file|socket|sent SIZE TEXT");
    int is_sent = strcmp(argv[1], "sent") == 0;
    int is_socket = is_sent || strcmp(argv[1], "socket") == 0;
    size_t size = strtoul(argv[2], 0, 10);
    int text = open(argv[3], O_RDONLY);
    must(text >= 0, argv[3]);
    struct stat about;
    must(fstat(text, &about) == 0, "fstat");
    size_t length = about.st_size / size * size, place = 0;
    char *bytes = malloc(length), *buffer = malloc(size);
    must(pread(text, bytes, length, 0) == (ssize_t)length, "pread");
    int pair[2] = {text, -1};
    if (is_socket) connect_pair(pair);

    long left;
    while (scanf("%ld", &left) == 1) {
        long long spent = 0;
        while (left > 0) {
            size_t batch = (length - place) / size;
            if (is_socket && batch > AHEAD / size) batch = AHEAD / size;
            if (batch > (size_t)left) batch = left;
            if (!is_socket)
                must(lseek(text, place, SEEK_SET) >= 0, "lseek");
            else if (!is_sent)
                write_all(pair[1], bytes + place, batch * size, 1);
            long long start = now();
            if (is_sent)
                write_all(pair[1], bytes + place, size, batch);
            else
                read_all(pair[0], buffer, size, batch);
            spent += now() - start;
            if (is_sent) read_all(pair[0], buffer, size, batch);
            left -= batch;
            place = (place + batch * size) % length;
        }
        printf("%lld\n", spent);
        fflush(stdout);
    }
    return 0;
}
