/* SPDX-License-Identifier: Apache-2.0 */
/* A process with both ends of a connection, which prints what each call returns. The lines of a run
 * without a link and of a run with one must be equal: the kernel is the oracle.
 *
 * The comment before a case lists its calls and flags, and how a link carries them: `ring` through
 * shared memory, `kernel` through TCP in this call, `for good` through TCP from then on (table.py). */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/select.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#ifdef IPV6 /* all of it once more */
#define sockaddr_in sockaddr_in6
#define LOOPBACK {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT}
enum { FAMILY = AF_INET6 };
#else
#define LOOPBACK {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)}
enum { FAMILY = AF_INET };
#endif

static int near, far, connections;

static const char *name(int error) { return error ? strerrorname_np(error) : "0"; }

#define SAY(call)                                                                  \
    do {                                                                           \
        errno = 0;                                                                 \
        long result_ = (long)(call);                                               \
        printf("%s %s = %ld %s\n", __func__, #call, result_,                       \
               result_ < 0 ? name(errno) : "");                                    \
    } while (0)

static int buffers; /* bytes of TCP's, 0 for the usual number */

static void limit_buffers(int fd) {
    if (buffers && (setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &buffers, sizeof buffers) ||
                    setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &buffers, sizeof buffers)))
        exit(2);
}

static int listen_at(struct sockaddr_in *address) {
    int listener = socket(FAMILY, SOCK_STREAM | SOCK_CLOEXEC, 0);
    socklen_t length = sizeof *address;
    limit_buffers(listener);
    *address = (struct sockaddr_in)LOOPBACK;
    if (bind(listener, (void *)address, length) || listen(listener, 8) ||
        getsockname(listener, (void *)address, &length))
        exit(2);
    return listener;
}

static int connect_to(const struct sockaddr_in *address) {
    int fd = socket(FAMILY, SOCK_STREAM | SOCK_CLOEXEC, 0);
    limit_buffers(fd);
    if (connect(fd, (const void *)address, sizeof *address)) exit(2);
    return fd;
}

/* So many bytes both ways that those from before the link are few. */
static void carry(int one, int other) {
    char bytes[1024];
    memset(bytes, 'w', sizeof bytes);
    for (int way = 0; way < 2; way++)
        if (write(way ? other : one, bytes, sizeof bytes) != sizeof bytes ||
            recv(way ? one : other, bytes, sizeof bytes, MSG_WAITALL) != sizeof bytes)
            exit(2);
}

static void connect_both(int fresh) {
    struct sockaddr_in address;
    int listener = listen_at(&address);
    near = connect_to(&address);
    far = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    close(listener);
    connections++;
    char byte = 'w';
    for (int round = 0; !fresh && round < 8; round++)
        if (write(near, &byte, 1) != 1 || read(far, &byte, 1) != 1 || write(far, &byte, 1) != 1 ||
            read(near, &byte, 1) != 1)
            exit(2);
    if (!fresh) carry(near, far);
}

static void close_both(void) {
    close(near);
    close(far);
}

/* Longer than anything takes on the busiest machine: tests/waiting.py. */
enum { SECONDS = 300 };

static void until_readable(int fd) {
    struct pollfd place = {.fd = fd, .events = POLLIN};
    poll(&place, 1, SECONDS * 1000);
}

/* Until this number of bytes can be read. */
static void until_bytes(int fd, int number) {
    for (int waiting = -1, tries = 0; waiting != number && tries < SECONDS * 1000; tries++) {
        if (ioctl(fd, FIONREAD, &waiting)) exit(2);
        if (waiting != number) usleep(1000);
    }
}

/* Until a thread has begun to wait in the kernel, in the call that it makes next. */
static void until_waits(pid_t thread) {
    char name[64], text[512], state = 0;
    snprintf(name, sizeof name, "/proc/%d/stat", (int)thread);
    while (state != 'S') {
        usleep(1000);
        FILE *file = fopen(name, "re");
        if (!file || !fgets(text, sizeof text, file)) exit(2);
        fclose(file);
        state = strrchr(text, ')')[2];
    }
}

static void begin(void) {
    setvbuf(stdout, NULL, _IOLBF, 0);
    alarm(SECONDS);
}

static void end(void) { printf("end %d\n", connections); }

#define CASE(call) (connect_both(0), call, close_both())
