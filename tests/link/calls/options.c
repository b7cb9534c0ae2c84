/* SPDX-License-Identifier: Apache-2.0 */
/* Options of sockets, and of descriptors. */
#include "both_ends.h"
#include <linux/tcp.h>
#include <linux/tls.h>

static void exchange(int number) {
    char text[8] = {0};
    SAY(write(near, "ask", 3));
    SAY(recv(far, text, 3, MSG_WAITALL));
    SAY(write(far, "say", 3));
    SAY(recv(near, text, 3, MSG_WAITALL));
    printf("%s %d %s\n", __func__, number, text);
}

/* ring: setsockopt */
static void harmless(void) {
    static const int options[][3] = {
        {SOL_SOCKET, SO_KEEPALIVE, 1},    {SOL_SOCKET, SO_SNDBUF, 65536},
        {SOL_SOCKET, SO_RCVBUF, 65536},   {SOL_SOCKET, SO_REUSEADDR, 1},
        {SOL_SOCKET, SO_PRIORITY, 3},     {IPPROTO_TCP, TCP_NODELAY, 1},
        {IPPROTO_TCP, TCP_CORK, 0},       {IPPROTO_TCP, TCP_QUICKACK, 1},
        {IPPROTO_TCP, TCP_KEEPIDLE, 100}, {IPPROTO_TCP, TCP_KEEPINTVL, 100},
        {IPPROTO_TCP, TCP_KEEPCNT, 9},    {IPPROTO_TCP, TCP_USER_TIMEOUT, 90000},
        {IPPROTO_TCP, TCP_MAXSEG, 1000},  {IPPROTO_TCP, TCP_NOTSENT_LOWAT, 16384},
        {IPPROTO_IP, IP_TOS, 8},          {IPPROTO_IP, IP_TTL, 60},
    };
    for (unsigned place = 0; place < sizeof options / sizeof *options; place++) {
        const int *option = options[place];
        SAY(setsockopt(near, option[0], option[1], option + 2, sizeof(int)));
        SAY(setsockopt(far, option[0], option[1], option + 2, sizeof(int)));
        exchange(place);
    }
    struct tcp_info info;
    socklen_t length = sizeof info;
    SAY(getsockopt(far, IPPROTO_TCP, TCP_INFO, &info, &length));
    exchange(-1);
}

/* The control data of a message that has a time: the kernel begins to note times some moments later. */
static void has_time(int option) {
    char text[8], control[256];
    struct iovec into = {text, sizeof text};
    struct msghdr message = {.msg_iov = &into, .msg_iovlen = 1, .msg_control = control};
    int on = 1;
    SAY(setsockopt(far, SOL_SOCKET, option, &on, sizeof on));
    for (int tries = 0; message.msg_controllen == 0 && tries < SECONDS * 100; tries++) {
        if (tries > 0) usleep(10000);
        message.msg_controllen = sizeof control;
        if (write(near, "time", 4) != 4 || recvmsg(far, &message, 0) != 4) exit(2);
    }
    SAY(message.msg_controllen);
}

/* for good: SO_TIMESTAMP_NEW SO_TIMESTAMPNS_NEW */
static void times(int option) {
    has_time(option ? SO_TIMESTAMPNS_NEW : SO_TIMESTAMP_NEW);
    exchange(option);
}

/* for good: TCP_ZEROCOPY_RECEIVE */
static void is_mapped(void) {
    struct tcp_zerocopy_receive zerocopy = {.length = 4096};
    socklen_t length = 40;
    char text[8];
    void *pages = mmap(NULL, 4096, PROT_READ, MAP_SHARED, far, 0);
    zerocopy.address = (unsigned long)pages;
    SAY(write(near, "abcd", 4));
    until_bytes(far, 4);
    SAY(getsockopt(far, IPPROTO_TCP, TCP_ZEROCOPY_RECEIVE, &zerocopy, &length));
    SAY(zerocopy.recv_skip_hint);
    SAY(read(far, text, 8));
    exchange(0);
    munmap(pages, 4096);
}

/* Both ends encrypt, if the kernel can. */
/* for good: TCP_ULP */
static void is_encrypted(void) {
    struct tls12_crypto_info_aes_gcm_128 keys = {
        .info = {.version = TLS_1_2_VERSION, .cipher_type = TLS_CIPHER_AES_GCM_128}};
    SAY(setsockopt(near, IPPROTO_TCP, TCP_ULP, "tls", 3));
    SAY(setsockopt(near, SOL_TLS, TLS_TX, &keys, sizeof keys));
    SAY(setsockopt(near, SOL_TLS, TLS_RX, &keys, sizeof keys));
    SAY(setsockopt(far, IPPROTO_TCP, TCP_ULP, "tls", 3));
    SAY(setsockopt(far, SOL_TLS, TLS_TX, &keys, sizeof keys));
    SAY(setsockopt(far, SOL_TLS, TLS_RX, &keys, sizeof keys));
    exchange(0);
}

/* Of a later kernel. */
/* for good: setsockopt */
static void is_unknown(int level) {
    int on = 1;
    SAY(setsockopt(far, level, 999, &on, sizeof on));
    exchange(level);
}

/* for good: O_ASYNC */
static void signals_are_sent(int by_ioctl) {
    sigset_t set;
    char text[8];
    int on = 1;
    struct timespec time = {SECONDS, 0};
    sigemptyset(&set), sigaddset(&set, SIGIO), sigprocmask(SIG_BLOCK, &set, NULL);
    SAY(fcntl(far, F_SETOWN, getpid()));
    if (by_ioctl)
        SAY(ioctl(far, FIOASYNC, &on));
    else
        SAY(fcntl(far, F_SETFL, O_ASYNC));
    while (sigtimedwait(&set, NULL, &(struct timespec){0}) > 0) {}
    SAY(write(near, "abcd", 4));
    SAY(sigtimedwait(&set, NULL, &time) == SIGIO);
    SAY(read(far, text, 8));
}

int main(void) {
    begin();
    CASE(harmless());
    CASE(times(0));
    CASE(times(1));
    CASE(is_mapped());
    CASE(is_encrypted());
    CASE(is_unknown(SOL_SOCKET));
    CASE(is_unknown(IPPROTO_TCP));
    CASE(is_unknown(IPPROTO_IP));
    CASE(is_unknown(SOL_TLS));
    CASE(signals_are_sent(0));
    CASE(signals_are_sent(1));
    end();
}
