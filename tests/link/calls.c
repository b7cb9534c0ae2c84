/* SPDX-License-Identifier: Apache-2.0 */
/* Calls on a connection whose two ends this process has, and what each returns. Run plain and
 * linked, the lines must be equal: the kernel is the oracle.
 *
 * The comment before a case names what it is about, and how a link carries it: `ring` through shared
 * memory, `kernel` through TCP in this call, `for good` through TCP from then on (table.py). */
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

static int near, far;

static const char *name(int error) { return error ? strerrorname_np(error) : "0"; }

#define SAY(call)                                                                  \
    do {                                                                           \
        errno = 0;                                                                 \
        long result_ = (long)(call);                                               \
        printf("%s %s = %ld %s\n", __func__, #call, result_,                       \
               result_ < 0 ? name(errno) : "");                                    \
    } while (0)

static void connect_both(int fresh) {
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;
    if (bind(listener, (void *)&address, length) || listen(listener, 8) ||
        getsockname(listener, (void *)&address, &length))
        exit(2);
    near = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (connect(near, (void *)&address, length)) exit(2);
    far = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    close(listener);
    char byte = 'w';
    for (int round = 0; !fresh && round < 8; round++)
        if (write(near, &byte, 1) != 1 || read(far, &byte, 1) != 1 || write(far, &byte, 1) != 1 ||
            read(near, &byte, 1) != 1)
            exit(2);
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

/* Until a thread of this process has begun to wait in the kernel, in the call that it makes next. */
static void until_waits(pid_t thread) {
    char name[64], text[512], state = 0;
    snprintf(name, sizeof name, "/proc/self/task/%d/stat", (int)thread);
    while (state != 'S') {
        usleep(1000);
        FILE *file = fopen(name, "re");
        if (!file || !fgets(text, sizeof text, file)) exit(2);
        fclose(file);
        state = strrchr(text, ')')[2];
    }
}

/* ring: send recv recvfrom write read shutdown ioctl MSG_PEEK MSG_TRUNC MSG_WAITALL MSG_DONTWAIT MSG_NOSIGNAL FIONREAD */
static void flags(void) {
    char text[16] = {0};
    SAY(send(near, "abcdef", 6, MSG_NOSIGNAL));
    until_readable(far);
    SAY(recv(far, text, 0, 0));
    SAY(recv(far, text, 4, MSG_PEEK));
    SAY(recv(far, text, 3, 0));
    printf("%s %s\n", __func__, text);
    SAY(recv(far, NULL, 2, MSG_TRUNC));
    SAY(recv(far, text, 16, MSG_DONTWAIT));
    SAY(recv(far, text, 16, MSG_DONTWAIT));
    SAY(send(near, "", 0, 0));
    SAY(write(near, "xyz", 3));
    until_readable(far);
    SAY(recv(far, text, 3, MSG_WAITALL));
    int waiting = -1;
    SAY(ioctl(far, FIONREAD, &waiting));
    SAY(waiting);
    SAY(write(near, "12345", 5));
    until_readable(far);
    SAY(ioctl(far, FIONREAD, &waiting));
    SAY(waiting);
    struct sockaddr_in address;
    socklen_t length = sizeof address;
    SAY(recvfrom(far, text, 5, 0, (void *)&address, &length));
    SAY(length);
    SAY(shutdown(near, SHUT_WR));
    length = sizeof address;
    SAY(recvfrom(far, text, 5, 0, (void *)&address, &length));
    SAY(length);
    SAY(recv(far, text, 5, 0));
    SAY(write(far, "back", 4));
    SAY(read(near, text, 16));
    SAY(send(near, "x", 1, MSG_NOSIGNAL));
}

/* ring: readv writev sendmsg recvmsg sendmmsg recvmmsg preadv2 */
/* kernel: pwritev2 */
static void vectors(void) {
    char first[3], second[8];
    struct iovec out[3] = {{"ab", 2}, {"", 0}, {"cdef", 4}};
    struct iovec into[2] = {{first, 3}, {second, 8}};
    SAY(writev(near, out, 3));
    until_readable(far);
    SAY(readv(far, into, 2));
    printf("%s %.3s %.3s\n", __func__, first, second);
    struct msghdr message = {.msg_iov = out, .msg_iovlen = 3};
    SAY(sendmsg(near, &message, 0));
    message = (struct msghdr){.msg_iov = into, .msg_iovlen = 2, .msg_controllen = 7};
    char control[7];
    message.msg_control = control;
    until_readable(far);
    SAY(recvmsg(far, &message, 0));
    SAY(message.msg_controllen);
    SAY(message.msg_flags);
    SAY(pwritev2(near, out, 3, -1, 0));
    SAY(pwritev2(near, out, 3, 0, 0));
    until_readable(far);
    SAY(preadv2(far, into, 2, -1, 0));
    SAY(preadv2(far, into, 2, 0, 0));
    SAY(readv(far, into, -1));
    SAY(writev(near, out, 2000));
    struct mmsghdr several[2] = {{.msg_hdr = {.msg_iov = out, .msg_iovlen = 1}}};
    SAY(sendmmsg(near, several, 1, 0));
    until_readable(far);
    several[0].msg_hdr.msg_iov = into;
    SAY(recvmmsg(far, several, 1, 0, NULL));
    SAY(several[0].msg_len);
}

/* ring: read write send readv recvmsg */
static void bad_addresses(void) {
    SAY(write(near, (void *)64, 5));
    SAY(send(near, (void *)64, 5, 0));
    SAY(write(near, "good", 4));
    until_readable(far);
    SAY(read(far, (void *)64, 4));
    SAY(readv(far, (void *)64, 2));
    SAY(recvmsg(far, (void *)64, 0));
    char text[4];
    SAY(read(far, text, 4));
}

/* ring: read write recv */
static void buffers_that_lose_their_memory(void) {
    char *pages = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    for (int round = 0; round < 200; round++)
        if (write(near, pages + 4000, 200) != 200 ||
            recv(far, pages + 4000, 200, MSG_WAITALL) != 200)
            exit(2);
    SAY(write(near, "abcdefgh", 8));
    until_readable(far);
    SAY(mprotect(pages, 4096, PROT_READ));
    SAY(read(far, pages, 2));
    SAY(mprotect(pages, 4096, PROT_NONE));
    SAY(write(near, pages, 2));
    SAY(read(far, pages + 4096, 2));
    SAY(syscall(SYS_munmap, pages + 4096, 4096));
    SAY(read(far, pages + 4096, 2));
    SAY(mprotect(pages, 4096, PROT_READ | PROT_WRITE));
    SAY(read(far, pages, 2));
    SAY(munmap(pages, 4096));
    SAY(write(near, pages, 2));
    SAY(read(far, pages, 2));
    int file = memfd_create("file", MFD_CLOEXEC);
    SAY(ftruncate(file, 4096));
    pages = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    for (int round = 0; round < 200; round++) {
        char text[8];
        if (write(near, pages, 8) != 8 || recv(far, text, 8, MSG_WAITALL) != 8) exit(2);
    }
    SAY(ftruncate(file, 0));
    SAY(write(near, pages, 8));
    SAY(munmap(pages, 4096));
    close(file);
}

/* ring: SO_RCVTIMEO O_NONBLOCK FIONBIO fcntl ioctl */
static void timeouts(void) {
    char text[4];
    struct timeval time = {.tv_usec = 20000};
    SAY(setsockopt(far, SOL_SOCKET, SO_RCVTIMEO, &time, sizeof time));
    SAY(read(far, text, 4));
    SAY(fcntl(far, F_SETFL, O_NONBLOCK));
    SAY(read(far, text, 4));
    int off = 0, on = 1;
    time.tv_usec = 0;
    SAY(setsockopt(far, SOL_SOCKET, SO_RCVTIMEO, &time, sizeof time));
    SAY(read(far, text, 4));
    SAY(ioctl(far, FIONBIO, &off));
    SAY(write(near, "one", 3));
    SAY(read(far, text, 4));
    SAY(ioctl(far, FIONBIO, &on));
    SAY(read(far, text, 4));
    SAY(fcntl(far, F_SETFL, 0));
    SAY(write(near, "two", 3));
    SAY(read(far, text, 4));
    SAY(syscall(SYS_fcntl, far, F_SETFL, O_NONBLOCK));
    SAY(read(far, text, 4));
    SAY(ioctl(far, FIONBIO, &off));
    SAY(write(near, "late", 4));
    until_readable(far);
    SAY(recv(far, text, 4, MSG_WAITALL));
}

/* ring: poll select POLLRDHUP */
static void polls(void) {
    struct pollfd places[2] = {{near, POLLIN | POLLOUT, 0}, {far, POLLIN, 0}};
    SAY(poll(places, 2, 0));
    SAY(places[0].revents);
    SAY(poll(places + 1, 1, 10));
    SAY(write(near, "p", 1));
    SAY(poll(places + 1, 1, SECONDS * 1000));
    SAY(places[1].revents);
    fd_set set;
    FD_ZERO(&set);
    FD_SET(far, &set);
    FD_SET(near, &set);
    struct timeval time = {.tv_sec = SECONDS};
    SAY(select((near > far ? near : far) + 1, &set, NULL, NULL, &time));
    SAY(FD_ISSET(far, &set) != 0);
    SAY(FD_ISSET(near, &set) != 0);
    char byte;
    SAY(read(far, &byte, 1));
    SAY(poll(places + 1, 1, 0));
    SAY(close(near));
    places[1].events = POLLIN | POLLRDHUP;
    SAY(poll(places + 1, 1, SECONDS * 1000));
    SAY(places[1].revents);
    SAY(read(far, &byte, 1));
}

/* ring: epoll_ctl epoll_wait EPOLLET EPOLLOUT EPOLLRDHUP syscall */
static void epolls(int edges, int by_syscall) {
    int set = epoll_create1(EPOLL_CLOEXEC);
    struct epoll_event event = {EPOLLIN | EPOLLRDHUP | (edges ? EPOLLET : 0), {.u64 = 77}}, got[4];
    SAY(epoll_ctl(set, EPOLL_CTL_ADD, far, &event));
    char byte = 'w';
    for (int round = 0; round < 8; round++) {
        if (write(near, &byte, 1) != 1) exit(2);
        SAY(by_syscall ? syscall(SYS_epoll_wait, set, got, 4, SECONDS * 1000) : epoll_wait(set, got, 4, SECONDS * 1000));
        SAY(got[0].events);
        SAY(got[0].data.u64);
        SAY(by_syscall ? syscall(SYS_read, far, &byte, 1) : read(far, &byte, 1));
        SAY(recv(far, &byte, 1, MSG_DONTWAIT));
        SAY(epoll_wait(set, got, 4, 0));
        if (write(far, &byte, 1) != 1 || read(near, &byte, 1) != 1) exit(2);
    }
    event.events |= EPOLLOUT;
    SAY(epoll_ctl(set, EPOLL_CTL_MOD, far, &event));
    SAY(write(near, "q", 1));
    until_readable(far);
    SAY(epoll_wait(set, got, 4, SECONDS * 1000));
    SAY(got[0].events);
    SAY(shutdown(near, SHUT_WR));
    struct pollfd place = {far, POLLRDHUP, 0};
    SAY(poll(&place, 1, SECONDS * 1000));
    SAY(epoll_wait(set, got, 4, SECONDS * 1000));
    SAY(got[0].events);
    SAY(read(far, &byte, 1));
    SAY(read(far, &byte, 1));
    SAY(epoll_ctl(set, EPOLL_CTL_DEL, far, NULL));
    SAY(epoll_wait(set, got, 4, 0));
    SAY(close(set));
}

/* ring: EPOLLET EPOLL_CTL_MOD */
static void edges_of_more_bytes(void) {
    int set = epoll_create1(EPOLL_CLOEXEC);
    struct epoll_event event = {EPOLLIN | EPOLLET, {.u64 = 5}}, got[2];
    char text[8];
    SAY(epoll_ctl(set, EPOLL_CTL_ADD, far, &event));
    for (int round = 0; round < 20; round++) {
        SAY(write(near, "1234", 4));
        SAY(epoll_wait(set, got, 2, 10000));
        SAY(read(far, text, 2));
        SAY(epoll_wait(set, got, 2, 0));
        SAY(write(near, "56", 2));
        SAY(epoll_wait(set, got, 2, 10000));
        SAY(read(far, text, 3));
        SAY(epoll_wait(set, got, 2, 0));
        SAY(epoll_ctl(set, EPOLL_CTL_MOD, far, &event));
        SAY(epoll_wait(set, got, 2, 0));
        SAY(read(far, text, 8));
        SAY(epoll_wait(set, got, 2, 0));
    }
    SAY(close(set));
}

static void *wait_in(void *set) {
    struct epoll_event got;
    return (void *)(long)epoll_wait(*(int *)set, &got, 1, 10000);
}

struct waiting {
    int set;
    _Atomic pid_t thread;
    int result;
};

static void waits_often(int set) {
    struct epoll_event got;
    char byte = 'o';
    for (int round = 0; round < 8; round++) {
        SAY(write(near, &byte, 1));
        SAY(epoll_wait(set, &got, 1, SECONDS * 1000));
        SAY(read(far, &byte, 1));
    }
}

static void *waits_in(void *of) {
    struct waiting *waiting = of;
    struct epoll_event got;
    waits_often(waiting->set);
    waiting->thread = gettid();
    waiting->result = epoll_wait(waiting->set, &got, 1, SECONDS * 1000);
    return NULL;
}

/* Something else than the thread that has waited for a set so far. */
/* ring: epoll_wait poll dup */
static void sets_of_others(int way) {
    int set = epoll_create1(EPOLL_CLOEXEC), other = epoll_create1(EPOLL_CLOEXEC);
    struct epoll_event event = {EPOLLIN, {.u64 = 6}}, got[2];
    struct pollfd place = {set, POLLIN, 0};
    char byte = 'o';
    SAY(epoll_ctl(set, EPOLL_CTL_ADD, far, &event));
    for (int round = 0; round < 8; round++) {
        SAY(write(near, &byte, 1));
        SAY(epoll_wait(set, got, 2, 10000));
        SAY(read(far, &byte, 1));
    }
    if (way == 0) {
        SAY(poll(&place, 1, 0));
        SAY(write(near, &byte, 1));
        SAY(poll(&place, 1, 10000));
    } else if (way == 1) {
        SAY(epoll_ctl(other, EPOLL_CTL_ADD, set, &event));
        SAY(epoll_wait(other, got, 2, 0));
        SAY(write(near, &byte, 1));
        SAY(epoll_wait(other, got, 2, 10000));
    } else if (way == 2) {
        int copy = dup(set);
        SAY(write(near, &byte, 1));
        SAY(epoll_wait(copy, got, 2, 10000));
        close(copy);
    } else {
        pthread_t thread;
        void *result;
        pthread_create(&thread, NULL, wait_in, &set);
        SAY(write(near, &byte, 1));
        pthread_join(thread, &result);
        SAY((long)result);
    }
    SAY(epoll_wait(set, got, 2, 10000));
    SAY(read(far, &byte, 1));
    SAY(epoll_wait(set, got, 2, 0));
    SAY(close(other));
    SAY(close(set));
}

/* As programs that change what they wait for with every message. */
/* ring: epoll_ctl EPOLL_CTL_ADD EPOLL_CTL_MOD EPOLL_CTL_DEL */
static void sets_that_change(void) {
    int set = epoll_create1(EPOLL_CLOEXEC);
    struct epoll_event in = {EPOLLIN, {.u64 = 1}}, out = {EPOLLOUT, {.u64 = 2}}, got[4];
    char byte = 'c';
    SAY(epoll_ctl(set, EPOLL_CTL_ADD, far, &in));
    for (int round = 0; round < 4; round++) {
        SAY(write(near, &byte, 1));
        SAY(epoll_wait(set, got, 4, SECONDS * 1000));
        SAY(got[0].events);
        SAY(epoll_ctl(set, EPOLL_CTL_DEL, far, NULL));
        SAY(epoll_ctl(set, EPOLL_CTL_DEL, far, NULL));
        SAY(epoll_ctl(set, EPOLL_CTL_MOD, far, &out));
        if (round % 2) SAY(epoll_wait(set, got, 4, 0));
        SAY(epoll_ctl(set, EPOLL_CTL_ADD, far, (void *)8));
        SAY(epoll_ctl(set, EPOLL_CTL_ADD, far, &out));
        SAY(epoll_ctl(set, EPOLL_CTL_ADD, far, &in));
        SAY(epoll_wait(set, got, 4, 0));
        SAY(got[0].events);
        SAY(got[0].data.u64);
        SAY(read(far, &byte, 1));
        SAY(write(far, &byte, 1));
        SAY(read(near, &byte, 1));
        in.data.u64 += 10;
        SAY(epoll_ctl(set, EPOLL_CTL_MOD, far, &in));
        SAY(epoll_wait(set, got, 4, 0));
        SAY(write(near, &byte, 1));
        SAY(epoll_wait(set, got, 4, SECONDS * 1000));
        SAY(got[0].data.u64);
        SAY(read(far, &byte, 1));
        SAY(epoll_ctl(set, 7, far, &in));
        SAY(epoll_ctl(set, EPOLL_CTL_MOD, near, &in));
    }
    SAY(close(set));
}

/* Where something else than the calling thread must see a change: one that waits in the kernel
 * already, poll, another set, a copy, a child, the descriptor's copy after it was closed. */
/* ring: epoll_ctl poll dup fork */
static void changes_for_others(int way) {
    int set = epoll_create1(EPOLL_CLOEXEC), other = epoll_create1(EPOLL_CLOEXEC), copy;
    struct epoll_event in = {EPOLLIN, {.u64 = 3}}, out = {EPOLLOUT, {.u64 = 4}}, got[2];
    struct pollfd place = {set, POLLIN, 0};
    SAY(epoll_ctl(set, EPOLL_CTL_ADD, far, &in));
    struct waiting waiting = {set};
    pthread_t thread;
    if (way > 0) {
        waits_often(set);
    } else {
        pthread_create(&thread, NULL, waits_in, &waiting);
        while (!waiting.thread) usleep(1000);
        until_waits(waiting.thread);
    }
    SAY(epoll_ctl(set, EPOLL_CTL_MOD, far, &out));
    if (way == 0) {
        pthread_join(thread, NULL);
        SAY(waiting.result);
    } else if (way == 1) {
        SAY(poll(&place, 1, SECONDS * 1000));
    } else if (way == 2) {
        SAY(epoll_ctl(other, EPOLL_CTL_ADD, set, &in));
        SAY(epoll_wait(other, got, 2, SECONDS * 1000));
    } else if (way == 3) {
        copy = dup(set);
        SAY(epoll_wait(copy, got, 2, SECONDS * 1000));
        close(copy);
    } else if (way == 4) {
        int status;
        fflush(stdout);
        pid_t child = fork();
        if (child == 0) _exit(epoll_wait(set, got, 2, SECONDS * 1000));
        waitpid(child, &status, 0);
        SAY(WEXITSTATUS(status));
    } else {
        copy = dup(far);
        SAY(epoll_ctl(set, EPOLL_CTL_DEL, far, NULL));
        SAY(close(far));
        SAY(epoll_wait(set, got, 2, 0));
        far = copy;
    }
    SAY(epoll_wait(set, got, 2, 0));
    SAY(close(other));
    SAY(close(set));
}

/* ring: close */
static void closes_with_bytes_unread(void) {
    char byte;
    SAY(write(near, "unread", 6));
    until_readable(far);
    SAY(close(far));
    until_readable(near);
    SAY(read(near, &byte, 1));
    SAY(send(near, "x", 1, MSG_NOSIGNAL));
}

/* ring: SO_LINGER close */
static void resets(void) {
    char byte;
    struct linger linger = {1, 0};
    SAY(write(near, "a", 1));
    SAY(setsockopt(near, SOL_SOCKET, SO_LINGER, &linger, sizeof linger));
    SAY(close(near));
    struct pollfd place = {far, POLLIN | POLLHUP, 0};
    SAY(poll(&place, 1, SECONDS * 1000) > 0);
    SAY(read(far, &byte, 1));
    SAY(read(far, &byte, 1));
    SAY(read(far, &byte, 1));
}

/* ring: SIGPIPE write close */
static void pipes_break(void) {
    signal(SIGPIPE, SIG_IGN);
    SAY(close(far));
    until_readable(near);
    SAY(write(near, "x", 1));
    struct pollfd place = {near, POLLHUP, 0};
    poll(&place, 1, SECONDS * 1000);
    SAY(write(near, "x", 1));
    signal(SIGPIPE, SIG_DFL);
}

/* ring: dup dup2 fcntl F_DUPFD_CLOEXEC close_range */
static void duplicates(void) {
    char text[8];
    int copy = dup(far);
    SAY(write(near, "abc", 3));
    SAY(close(far));
    SAY(read(copy, text, 2));
    SAY(dup2(copy, copy) == copy);
    int other = fcntl(copy, F_DUPFD_CLOEXEC, 100);
    SAY(close(copy));
    SAY(read(other, text, 8));
    SAY(write(other, "back", 4));
    SAY(read(near, text, 8));
    SAY(close(other));
    SAY(read(near, text, 8));
    SAY(close_range(250, 150, 0));
    SAY(close_range(3000, 4000, 0));
}

static void *copy_all(void *arguments) {
    long *sum = arguments;
    unsigned char buffer[70000];
    long got;
    while ((got = recv(far, buffer, sizeof buffer, 0)) > 0)
        for (long place = 0; place < got; place++) sum[0] = sum[0] * 31 + buffer[place], sum[1]++;
    return NULL;
}

/* ring: write shutdown */
static void many_bytes(void) {
    static unsigned char block[300000];
    long sums[2] = {0, 0};
    pthread_t thread;
    pthread_create(&thread, NULL, copy_all, sums);
    for (int round = 0; round < 60; round++) {
        for (size_t place = 0; place < sizeof block; place++) block[place] = place * 7 + round;
        size_t length = round % 3 ? sizeof block : 100u + round;
        if (write(near, block, length) != (long)length) exit(2);
    }
    shutdown(near, SHUT_WR);
    pthread_join(thread, NULL);
    printf("%s %ld %lx\n", __func__, sums[1], sums[0]);
}

/* ring: sendfile */
static void files_are_sent(void) {
    char text[64] = {0};
    int file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC), other = open("/dev/null", O_WRONLY);
    SAY(write(near, "before", 6));
    SAY(sendfile(near, file, NULL, 4));
    SAY(write(near, "after", 5));
    SAY(recv(far, text, 15, MSG_WAITALL));
    printf("%s %.6s %.3s %.5s\n", __func__, text, text + 7, text + 10);
    off_t end = lseek(file, 0, SEEK_END), at = 1;
    SAY(sendfile(near, file, &at, 3));
    SAY(at);
    SAY(lseek(file, 0, SEEK_CUR) == end);
    SAY(recv(far, text, 3, MSG_WAITALL));
    printf("%s %.3s\n", __func__, text);
    SAY(sendfile(near, file, &at, 0));
    at = end - 5;
    SAY(sendfile(near, file, &at, 100));
    SAY(at == end);
    SAY(sendfile(near, file, &at, 100));
    SAY(recv(far, text, 5, MSG_WAITALL));
    at = -1;
    SAY(sendfile(near, file, &at, 3));
    SAY(sendfile(near, file, (void *)8, 3));
    at = 0;
    SAY(sendfile(near, other, &at, 3));
    SAY(sendfile(near, -1, &at, 3));
    SAY(sendfile(near, far, &at, 3));
    SAY(at);
    close(file), close(other);
}

struct stream {
    long bytes, sum;
};

static void *takes_all(void *of) {
    static unsigned char text[30000];
    struct stream *stream = of;
    for (long got; (got = read(far, text, sizeof text)) > 0; stream->bytes += got)
        for (long place = 0; place < got; place++)
            stream->sum += text[place] * ((stream->bytes + place) % 1009 + 1);
    return NULL;
}

/* More than a ring has room for, with and without waiting for the receiver. */
/* ring: sendfile */
static void large_files_are_sent(int returns) {
    enum { SIZE = 3 << 20 };
    int file = memfd_create("file", MFD_CLOEXEC);
    for (int place = 0; place < SIZE; place += 4) pwrite(file, &place, 4, place);
    if (returns) fcntl(near, F_SETFL, O_NONBLOCK);
    struct stream got = {0};
    struct pollfd place = {near, POLLOUT, 0};
    pthread_t thread;
    off_t at = 0;
    pthread_create(&thread, NULL, takes_all, &got);
    while (at < SIZE)
        if (sendfile(near, file, &at, SIZE - at) < 0) poll(&place, 1, SECONDS * 1000);
    shutdown(near, SHUT_WR);
    pthread_join(thread, NULL);
    SAY(got.bytes);
    SAY(got.sum);
    close(file);
}

static void *answer(void *arguments) {
    char byte;
    pid_t own = gettid();
    write(*(int *)arguments, &own, sizeof own);
    read(near, &byte, 1); /* waits, so that it can give back what was not read */
    return NULL;
}

/* A thread that waits for a byte at `near`. */
static pthread_t answering(void) {
    int thread_at[2];
    pthread_t thread;
    pid_t number;
    if (pipe2(thread_at, O_CLOEXEC) || pthread_create(&thread, NULL, answer, &thread_at[1]) ||
        read(thread_at[0], &number, sizeof number) != sizeof number)
        exit(2);
    until_waits(number);
    close(thread_at[0]), close(thread_at[1]);
    return thread;
}

/* for good: execlp */
static void goes_to_a_child(void) {
    char text[32] = {0};
    int out[2];
    pthread_t thread;
    SAY(pipe2(out, O_CLOEXEC));
    SAY(write(near, "for the child", 13));
    thread = answering();
    SAY(fcntl(far, F_SETFD, 0));
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        dup2(far, 0);
        dup2(out[1], 1);
        execlp("head", "head", "-c", "13", NULL);
        _exit(9);
    }
    close(out[1]);
    SAY(read(out[0], text, sizeof text));
    printf("%s %s\n", __func__, text);
    int status = -1;
    waitpid(child, &status, 0);
    SAY(status);
    SAY(write(far, "x", 1));
    pthread_join(thread, NULL);
    close(out[0]);
}

/* for good: fdopen */
static void goes_to_stdio(void) {
    char text[32] = {0};
    pthread_t thread;
    SAY(write(near, "a line\n", 7));
    thread = answering();
    FILE *stream = fdopen(dup(far), "r");
    SAY(fgets(text, sizeof text, stream) == text);
    printf("%s %s", __func__, text);
    SAY(write(far, "x", 1));
    pthread_join(thread, NULL);
    fclose(stream);
}

/* for good: SCM_RIGHTS */
static void is_passed(void) {
    char text[32] = {0};
    int pair[2];
    pthread_t thread;
    SAY(socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
    SAY(write(near, "passed", 6));
    thread = answering();
    char control[CMSG_SPACE(sizeof(int))] = {0}, byte = 'b';
    struct iovec part = {&byte, 1};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = control,
                             .msg_controllen = sizeof control};
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(header), &far, sizeof(int));
    SAY(sendmsg(pair[0], &message, 0));
    SAY(recvmsg(pair[1], &message, 0));
    int passed;
    memcpy(&passed, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof passed);
    SAY(read(passed, text, sizeof text));
    printf("%s %s\n", __func__, text);
    SAY(write(passed, "x", 1));
    pthread_join(thread, NULL);
    close(passed), close(pair[0]), close(pair[1]);
}

/* ring: fork */
static void forks(void) {
    char text[8] = {0};
    SAY(write(near, "12", 2));
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        if (read(far, text, 1) != 1 || write(far, "c", 1) != 1) _exit(8);
        _exit(text[0]);
    }
    int status;
    waitpid(child, &status, 0);
    SAY(WEXITSTATUS(status));
    SAY(read(near, text, 8));
    SAY(read(far, text, 8));
    SAY(write(far, "back", 4));
    SAY(read(near, text, 8));
}

static volatile sig_atomic_t is_handled;

static void handled(int signal) { is_handled = signal; }

static void *interrupt(void *thread) {
    until_waits(getpid()); /* the main thread */
    pthread_kill(*(pthread_t *)thread, SIGUSR1);
    while (!is_handled)
        usleep(1000);
    write(near, "s", 1);
    return NULL;
}

/* ring: SA_RESTART read */
static void signals(int flags) {
    char byte;
    struct sigaction action = {.sa_handler = handled, .sa_flags = flags};
    is_handled = 0;
    sigaction(SIGUSR1, &action, NULL);
    pthread_t self = pthread_self(), thread;
    pthread_create(&thread, NULL, interrupt, &self);
    SAY(read(far, &byte, 1));
    pthread_join(thread, NULL);
}

static void *wait_for_ever(void *fd) {
    char byte;
    read(*(int *)fd, &byte, 1);
    return NULL;
}

/* ring: pthread_cancel */
static void is_cancelled(void) {
    pthread_t thread;
    void *result;
    pthread_create(&thread, NULL, wait_for_ever, &far);
    usleep(20000);
    pthread_cancel(thread);
    pthread_join(thread, &result);
    SAY(result == PTHREAD_CANCELED);
    char byte;
    SAY(write(near, "c", 1));
    SAY(read(far, &byte, 1));
    SAY(close(far));
    SAY(read(near, &byte, 1));
}

static volatile pid_t reader;

static void *reads_once(void *got) {
    reader = gettid();
    *(long *)got = read(far, (char *)got + sizeof(long), 8);
    return NULL;
}

/* ring: close read dup */
static void is_closed_while_a_thread_reads(int has_copy) {
    pthread_t thread;
    struct {
        long result;
        char text[8];
    } got = {0};
    int copy = has_copy ? dup(far) : -1, number = far;
    reader = 0;
    pthread_create(&thread, NULL, reads_once, &got);
    while (!reader) usleep(1000);
    until_waits(reader);
    SAY(close(number));
    int pair[2];
    SAY(socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
    SAY(pair[0] == number || pair[1] == number);
    SAY(write(pair[0], "another", 7));
    SAY(write(pair[1], "another", 7));
    SAY(write(near, "late", 4));
    pthread_join(thread, NULL);
    SAY(got.result);
    printf("%s %s\n", __func__, got.text);
    if (has_copy) {
        SAY(write(copy, "back", 4));
        SAY(read(near, got.text, 4));
        SAY(close(copy));
    }
    SAY(read(near, got.text, 4));
    close(pair[0]), close(pair[1]);
    far = -1;
}

/* kernel: MSG_OOB POLLPRI */
static void out_of_band(void) {
    char text[8];
    SAY(send(near, "ab", 2, 0));
    SAY(send(near, "!", 1, MSG_OOB));
    SAY(send(near, "cd", 2, 0));
    struct pollfd place = {far, POLLPRI, 0};
    SAY(poll(&place, 1, SECONDS * 1000));
    SAY(recv(far, text, 1, MSG_OOB));
    SAY(recv(far, text, 2, MSG_WAITALL));
    SAY(recv(far, text, 2, MSG_WAITALL));
}

int main(void) {
    setvbuf(stdout, NULL, _IOLBF, 0);
    alarm(SECONDS);
#define CASE(call) (connect_both(0), call, close_both())
    CASE(flags());
    CASE(vectors());
    CASE(bad_addresses());
    CASE(buffers_that_lose_their_memory());
    CASE(timeouts());
    CASE(polls());
    CASE(epolls(0, 0));
    CASE(epolls(1, 0));
    CASE(epolls(0, 1));
    connect_both(1), epolls(0, 0), close_both();
    CASE(edges_of_more_bytes());
    for (int way = 0; way < 4; way++) CASE(sets_of_others(way));
    CASE(sets_that_change());
    for (int way = 0; way < 6; way++) CASE(changes_for_others(way));
    CASE(closes_with_bytes_unread());
    CASE(resets());
    CASE(pipes_break());
    CASE(duplicates());
    CASE(many_bytes());
    CASE(files_are_sent());
    CASE(large_files_are_sent(0));
    CASE(large_files_are_sent(1));
    CASE(goes_to_a_child());
    CASE(goes_to_stdio());
    CASE(is_passed());
    CASE(forks());
    CASE(signals(SA_RESTART));
    CASE(signals(0));
    CASE(is_cancelled());
    CASE(out_of_band());
    CASE(is_closed_while_a_thread_reads(0));
    CASE(is_closed_while_a_thread_reads(1));
    puts("end");
}
