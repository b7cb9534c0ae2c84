/* SPDX-License-Identifier: Apache-2.0 */
/* Two processes with a link. The sender writes bytes that the receiver does not read, and then makes
 * no call, or ends. The receiver gives the connection to a program without a link. That must get
 * every byte, in order.
 *
 * downgrades WAY END BYTES ROUNDS: WAY is exec or pass, END is rests, closes, closes_at_limit, execs,
 * exits, _exits, quick_exits or kills, BYTES is the most that the sender writes in a round. TCP
 * buffers take less than 200 KB.
 * downgrades check FIRST BYTES: reads descriptor 0 to its end, or BYTES (0: to the end). */
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
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { BUFFER = 64 << 10, PIECE = 1 << 16, WARM = 24 << 20, LARGE = 1 << 20, SECONDS = 300 };
enum { AGAIN, ENOUGH };

static void fail(const char *what) {
    perror(what);
    exit(2);
}

static unsigned char at(long place) { return (unsigned char)(place * 7 + place / 251); }

static void fill(unsigned char *piece, long first, long length) {
    for (long place = 0; place < length; place++) piece[place] = at(first + place);
}

static void verify(const unsigned char *piece, long first, long length) {
    for (long place = 0; place < length; place++)
        if (piece[place] != at(first + place)) {
            fprintf(stderr, "byte %ld is wrong\n", first + place);
            exit(3);
        }
}

/* Reads and checks `length` bytes, or all; returns how many. */
static long check(int fd, long first, long length) {
    static unsigned char piece[PIECE];
    long got = 0;
    while (!length || got < length) {
        long most = length && length - got < PIECE ? length - got : PIECE;
        long more = read(fd, piece, most);
        if (more < 0) fail("read");
        if (more == 0) break;
        verify(piece, first + got, more);
        got += more;
    }
    return got;
}

static void tell(int pipe, long number) {
    if (write(pipe, &number, sizeof number) != sizeof number) fail("pipe");
}

static long hear(int pipe) {
    long number;
    if (read(pipe, &number, sizeof number) != sizeof number) fail("pipe");
    return number;
}

/* Writes at most `most` bytes without waiting. */
static long send_unread(int fd, long first, long most) {
    static unsigned char piece[PIECE];
    long sent = 0;
    while (sent < most) {
        long length = most - sent < PIECE ? most - sent : PIECE;
        fill(piece, first + sent, length);
        long more = send(fd, piece, length, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (more < 0 && errno == EAGAIN) break;
        if (more < 0) fail("send");
        sent += more;
    }
    return sent;
}

static int connected(const struct sockaddr_in *address) {
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), size = BUFFER;
    setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof size);
    if (connect(fd, (void *)address, sizeof *address)) fail("connect");
    return fd;
}

/* Both ends say something, so that they find each other, and the ring grows if it is to be large. */
static long warm_up(int fd, int is_sender, long bytes) {
    static unsigned char piece[PIECE];
    char byte = 'w';
    for (int round = 0; round < 8; round++) {
        if (is_sender && (write(fd, &byte, 1) != 1 || read(fd, &byte, 1) != 1)) fail("warm");
        if (!is_sender && (read(fd, &byte, 1) != 1 || write(fd, &byte, 1) != 1)) fail("warm");
    }
    long warm = bytes > PIECE ? WARM : 0;
    if (!is_sender) {
        if (warm && check(fd, 0, warm) != warm) fail("warm");
        return warm;
    }
    for (long sent = 0; sent < warm; sent += PIECE) {
        fill(piece, sent, PIECE);
        if (write(fd, piece, PIECE) != PIECE) fail("warm");
    }
    return warm;
}

static int sender(const struct sockaddr_in *address, const char *end, long bytes, long rounds,
                  int say, int go) {
    for (long round = 0; round < rounds; round++) {
        int fd = connected(address);
        long first = warm_up(fd, 1, bytes);
        long sent = 0;
        while (hear(go) == AGAIN) {
            first += sent;
            sent = send_unread(fd, first, 1 + bytes * (rounds - round) / rounds);
            tell(say, sent);
        }
        if (!strcmp(end, "closes_at_limit"))
            while (dup(say) >= 0) {}
        if (!strncmp(end, "closes", 6)) close(fd);
        if (!strcmp(end, "execs")) {
            close(fd);
            tell(say, sent);
            execlp("true", "true", NULL);
        }
        tell(say, sent);
        if (!strcmp(end, "exits")) exit(0);
        if (!strcmp(end, "_exits")) _exit(0);
        if (!strcmp(end, "quick_exits")) quick_exit(0);
        if (!strcmp(end, "kills")) kill(getpid(), SIGKILL);
        hear(go); /* makes no call meanwhile */
        if (strncmp(end, "closes", 6)) close(fd);
    }
    return 0;
}

static int exec_check(const char *self, int fd, long first, long bytes) {
    char texts[2][32];
    sprintf(texts[0], "%ld", first), sprintf(texts[1], "%ld", bytes);
    dup2(fd, 0);
    execl(self, self, "check", texts[0], texts[1], NULL);
    return 9;
}

static int passed(int fd) {
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair)) fail("socketpair");
    char control[CMSG_SPACE(sizeof(int))] = {0}, byte = 'b';
    struct iovec part = {&byte, 1};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = control,
                             .msg_controllen = sizeof control};
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(header), &fd, sizeof(int));
    if (sendmsg(pair[0], &message, 0) != 1 || recvmsg(pair[1], &message, 0) != 1) fail("pass");
    memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof fd);
    close(pair[0]), close(pair[1]);
    return fd;
}

int main(int count, char **arguments) {
    alarm(SECONDS);
    signal(SIGPIPE, SIG_IGN);
    if (count == 4 && !strcmp(arguments[1], "check")) {
        long first = atol(arguments[2]), bytes = atol(arguments[3]);
        long got = check(0, first, bytes);
        printf("%ld\n", got);
        return 0;
    }
    if (count != 5) return 2;
    struct rlimit limit;
    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = 256;
    setrlimit(RLIMIT_NOFILE, &limit);
    const char *way = arguments[1], *end = arguments[2];
    long bytes = atol(arguments[3]), rounds = atol(arguments[4]);
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), size = BUFFER;
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;
    setsockopt(listener, SOL_SOCKET, SO_RCVBUF, &size, sizeof size);
    if (bind(listener, (void *)&address, length) || listen(listener, 8) ||
        getsockname(listener, (void *)&address, &length))
        fail("listen");
    int say[2], go[2];
    if (pipe2(say, O_CLOEXEC) || pipe2(go, O_CLOEXEC)) fail("pipe");
    pid_t other = fork();
    close(other ? say[1] : say[0]), close(other ? go[0] : go[1]);
    if (other == 0) return sender(&address, end, bytes, rounds, say[1], go[0]);
    int is_over = strcmp(end, "rests") != 0, ends = is_over && strncmp(end, "closes", 6);
    long all = 0;
    for (long round = 0; round < rounds; round++) {
        int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
        long first = warm_up(fd, 0, bytes);
        long sent;
        for (;;) {
            tell(go[1], AGAIN);
            sent = hear(say[0]);
            /* A ring grows when it was full: on a busy machine it may still be small. */
            if (bytes <= PIECE || sent >= LARGE) break;
            if (check(fd, first, sent) != sent) return 6;
            first += sent;
        }
        tell(go[1], ENOUGH);
        hear(say[0]);
        if (ends) waitpid(other, NULL, 0);
        if (strcmp(way, "exec") == 0) {
            fflush(stdout);
            pid_t child = fork();
            if (child == 0) _exit(exec_check(arguments[0], fd, first, is_over ? 0 : sent));
            close(fd);
            int status = -1;
            waitpid(child, &status, 0);
            if (status) return 4;
        } else {
            int copy = passed(fd);
            close(fd);
            if (check(copy, first, is_over ? 0 : sent) != sent) return 5;
            close(copy);
        }
        printf("%ld\n", sent);
        all += sent;
        if (!ends) tell(go[1], ENOUGH);
    }
    if (!ends) waitpid(other, NULL, 0);
    printf("end %ld\n", all);
    return 0;
}
