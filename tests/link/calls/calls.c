/* SPDX-License-Identifier: Apache-2.0 */
/* Calls that send and receive, and their flags. */
#include "both_ends.h"

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

/* Bytes of TCP with bytes of the ring behind them. */
/* ring: ioctl FIONREAD recv read MSG_PEEK MSG_TRUNC */
/* kernel: pwritev2 */
static void bytes_on_both_ways(void) {
    char text[16];
    int waiting = -1;
    struct iovec out = {"cd", 2};
    for (int round = 0; round < 4; round++) {
        SAY(pwritev2(near, &out, 1, -1, 0));
        until_readable(far);
        SAY(recv(far, text, 16, MSG_PEEK));
        SAY(write(near, "efgh", 4));
        until_bytes(far, 6);
        SAY(ioctl(far, FIONREAD, &waiting));
        SAY(waiting);
        SAY(recv(far, text, 16, MSG_PEEK));
        printf("%s %.6s\n", __func__, text);
        SAY(recv(far, text, 5, MSG_PEEK | MSG_TRUNC));
        SAY(round % 2 ? recv(far, text, 5, 0) : read(far, text, 16));
        SAY(recv(far, text, 16, MSG_DONTWAIT));
    }
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

static void print_lengths(const struct mmsghdr *messages, int count) {
    for (int number = 0; number < count; number++) {
        const struct iovec *part = messages[number].msg_hdr.msg_iov;
        printf("%s %u %.*s\n", __func__, messages[number].msg_len, messages[number].msg_len,
               (char *)part->iov_base);
    }
}

/* ring: recvmmsg sendmmsg MSG_WAITFORONE */
static void several_messages(void) {
    char text[3][4] = {0};
    struct iovec parts[3], out[3] = {{"ab", 2}, {"cd", 2}, {"e", 1}};
    struct mmsghdr got[3] = {0}, sent[3] = {0};
    for (int number = 0; number < 3; number++) {
        parts[number] = (struct iovec){text[number], 2};
        got[number].msg_hdr = (struct msghdr){.msg_iov = parts + number, .msg_iovlen = 1};
        sent[number].msg_hdr = (struct msghdr){.msg_iov = out + number, .msg_iovlen = 1};
    }
    SAY(sendmmsg(near, sent, 3, 0));
    print_lengths(sent, 3);
    until_bytes(far, 5);
    SAY(recvmmsg(far, got, 3, 0, NULL));
    print_lengths(got, 3);
    SAY(write(near, "fghi", 4));
    until_bytes(far, 4);
    SAY(recvmmsg(far, got, 3, MSG_WAITFORONE, NULL));
    print_lengths(got, 2);
    SAY(recvmmsg(far, got, 3, MSG_DONTWAIT, NULL));
    struct timespec time = {SECONDS, 0}, wrong = {0, -1};
    SAY(write(near, "jklmno", 6));
    until_bytes(far, 6);
    SAY(recvmmsg(far, got, 3, 0, &wrong));
    SAY(recvmmsg(far, got, 3, 0, &time));
    print_lengths(got, 3);
    SAY(time.tv_sec < SECONDS && time.tv_sec > 0);
    sent[2].msg_hdr.msg_iov = (void *)64;
    SAY(sendmmsg(near, sent, 3, 0));
    until_bytes(far, 4);
    SAY(shutdown(near, SHUT_WR));
    SAY(recvmmsg(far, got, 3, 0, NULL));
    print_lengths(got, 3);
}

enum { MORE_THAN_COMES = 1000 };
static volatile int is_over;

static void *sends_slowly(void *unused) {
    for (int sent = 0; sent < MORE_THAN_COMES && !is_over; sent++) {
        usleep(10000);
        write(near, "s", 1);
    }
    return unused;
}

/* ring: SO_RCVTIMEO MSG_WAITALL */
static void time_of_a_whole_call(void) {
    char text[MORE_THAN_COMES];
    struct timeval time = {.tv_usec = 200000};
    pthread_t thread;
    setsockopt(far, SOL_SOCKET, SO_RCVTIMEO, &time, sizeof time);
    pthread_create(&thread, NULL, sends_slowly, NULL);
    SAY(recv(far, text, sizeof text, MSG_WAITALL) < MORE_THAN_COMES);
    is_over = 1;
    pthread_join(thread, NULL);
}

int main(void) {
    begin();
    CASE(flags());
    CASE(vectors());
    CASE(bad_addresses());
    CASE(buffers_that_lose_their_memory());
    CASE(bytes_on_both_ways());
    CASE(timeouts());
    CASE(time_of_a_whole_call());
    CASE(several_messages());
    CASE(many_bytes());
    CASE(out_of_band());
    end();
}
