/* SPDX-License-Identifier: Apache-2.0 */
/* Calls that the program makes by `syscall`. */
#include "both_ends.h"
#include <linux/aio_abi.h>

/* ring: syscall */
static void bytes_move(void) {
    char text[2][8] = {0};
    struct iovec out[2] = {{"ab", 2}, {"cd", 2}}, into[2] = {{text[0], 2}, {text[1], 8}};
    struct mmsghdr sent[2] = {{.msg_hdr = {.msg_iov = out, .msg_iovlen = 1}},
                              {.msg_hdr = {.msg_iov = out + 1, .msg_iovlen = 1}}};
    struct mmsghdr got[2] = {{.msg_hdr = {.msg_iov = into, .msg_iovlen = 1}},
                             {.msg_hdr = {.msg_iov = into + 1, .msg_iovlen = 1}}};
    SAY(syscall(SYS_sendmmsg, near, sent, 2, 0));
    SAY(sent[1].msg_len);
    until_bytes(far, 4);
    struct timespec time = {SECONDS, 0};
    SAY(syscall(SYS_recvmmsg, far, got, 2, MSG_WAITFORONE, &time));
    printf("%s %.2s %.2s\n", __func__, text[0], text[1]);
    SAY(syscall(SYS_pwritev2, near, out, 2, -1L, 0L, 0));
    until_bytes(far, 4);
    SAY(syscall(SYS_preadv2, far, into, 2, -1L, 0L, 0));
    SAY(syscall(SYS_preadv2, far, into, 2, 0L, 0L, 0));
    SAY(write(near, "efgh", 4));
    until_bytes(far, 4);
    SAY(syscall(SYS_preadv2, far, into, 2, -1L, 0L, RWF_NOWAIT));
    printf("%s %.2s %.2s\n", __func__, text[0], text[1]);
    SAY(syscall(SYS_preadv2, far, into, 2, -1L, 0L, RWF_NOWAIT));
}

static fd_set of(int fd) {
    fd_set set;
    FD_ZERO(&set);
    FD_SET(fd, &set);
    return set;
}

/* ring: syscall */
static void selects(void) {
    char text[8];
    fd_set set = of(far);
    struct timespec time = {SECONDS, 0}, moment = {0, 1000000};
    struct {
        const sigset_t *set;
        size_t size;
    } mask = {NULL, 8};
    SAY(syscall(SYS_pselect6, far + 1, &set, NULL, NULL, &moment, &mask));
    SAY(FD_ISSET(far, &set));
    SAY(moment.tv_nsec);
    SAY(write(near, "abcd", 4));
    set = of(far);
    SAY(syscall(SYS_pselect6, far + 1, &set, NULL, NULL, &time, NULL));
    SAY(FD_ISSET(far, &set));
    SAY(time.tv_sec < SECONDS && time.tv_sec > 0);
    SAY(syscall(SYS_pselect6, far + 1, &set, NULL, NULL, &time, 8));
#ifdef SYS_select
    struct timeval left = {SECONDS, 0};
    set = of(far);
    SAY(syscall(SYS_select, far + 1, &set, NULL, NULL, &left));
    SAY(left.tv_sec < SECONDS && left.tv_sec > 0);
#else
    SAY(select(far + 1, &set, NULL, NULL, NULL));
#endif
    SAY(FD_ISSET(far, &set));
    SAY(read(far, text, 8));
}

/* ring: syscall */
static void epolls(int is_old) {
    char text[8];
    struct epoll_event event = {EPOLLIN, {.u64 = 9}}, got[2];
    struct timespec time = {SECONDS, 0}, moment = {0, 1000000};
    sigset_t mask;
#ifdef SYS_epoll_create
    int set = is_old ? syscall(SYS_epoll_create, 1) : epoll_create1(0);
#else
    int set = epoll_create1(0);
#endif
    sigemptyset(&mask);
    SAY(syscall(SYS_epoll_ctl, set, EPOLL_CTL_ADD, far, &event));
    SAY(syscall(SYS_epoll_pwait2, set, got, 2, &moment, NULL, 0));
    SAY(write(near, "abcd", 4));
    SAY(syscall(SYS_epoll_pwait2, set, got, 2, &time, &mask, 3));
    SAY(syscall(SYS_epoll_pwait2, set, got, 2, &time, &mask, 8));
    printf("%s %x %d\n", __func__, got[0].events, (int)got[0].data.u64);
    SAY(syscall(SYS_epoll_pwait2, set, got, 2, NULL, NULL, 0));
    SAY(read(far, text, 8));
    close(set);
}

/* ring: syscall */
static void descriptors_change(void) {
    char text[8];
    int other = syscall(SYS_dup, far), third = syscall(SYS_dup3, far, other + 9, O_CLOEXEC);
    SAY(write(near, "abcdef", 6));
    SAY(syscall(SYS_close, far));
    SAY(read(other, text, 2));
    SAY(syscall(SYS_close, other));
    SAY(read(third, text, 2));
    struct pollfd place = {third, POLLIN, 0};
    struct timespec time = {SECONDS, 0};
    SAY(syscall(SYS_ppoll, &place, 1, &time, NULL, 8));
    far = third;
    SAY(read(far, text, 8));
    SAY(syscall(SYS_shutdown, near, SHUT_WR));
    SAY(read(far, text, 8));
}

/* for good: SO_RCVLOWAT */
static void is_option_set(void) {
    char text[8];
    int on = 1, least = 4;
    SAY(syscall(SYS_setsockopt, far, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on));
    SAY(write(near, "ab", 2));
    SAY(syscall(SYS_setsockopt, far, SOL_SOCKET, SO_RCVLOWAT, &least, sizeof least));
    struct pollfd place = {far, POLLIN, 0};
    SAY(poll(&place, 1, 20));
    SAY(write(near, "cd", 2));
    SAY(poll(&place, 1, SECONDS * 1000));
    SAY(read(far, text, 8));
}

/* for good: SYS_io_submit */
static void is_submitted(void) {
    char text[8] = {0};
    aio_context_t context = 0;
    struct iocb block = {.aio_lio_opcode = IOCB_CMD_PREAD, .aio_fildes = far,
                         .aio_buf = (unsigned long)text, .aio_nbytes = 8};
    struct iocb *blocks[] = {&block, (void *)64};
    struct io_event event;
    SAY(syscall(SYS_io_setup, 1, &context));
    SAY(write(near, "abcd", 4));
    SAY(syscall(SYS_io_submit, context, 1, blocks));
    SAY(syscall(SYS_io_getevents, context, 1, 1, &event, NULL));
    SAY(event.res);
    printf("%s %s\n", __func__, text);
    SAY(syscall(SYS_io_submit, context, 1, blocks + 1));
    SAY(syscall(SYS_io_submit, context, -1L, blocks));
    SAY(syscall(SYS_io_destroy, context));
}

int main(void) {
    begin();
    CASE(bytes_move());
    CASE(selects());
    CASE(epolls(0));
    CASE(epolls(1));
    CASE(descriptors_change());
    CASE(is_option_set());
    CASE(is_submitted());
    end();
}
