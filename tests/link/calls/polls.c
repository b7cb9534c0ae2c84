/* SPDX-License-Identifier: Apache-2.0 */
/* poll, select and epoll. */
#include "both_ends.h"

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

/* Sets of more descriptors than a fd_set has; a program with a usual one may name more, too. */
/* ring: select */
static void selects_many(void) {
    enum { HIGH = 1500, LONG = 1 << 16 };
    static unsigned long set[LONG / 64];
    struct {
        fd_set set;
        unsigned long behind[LONG / 64];
    } usual = {0};
    struct timeval now = {0, 0};
    char text[8];
    if (dup2(far, HIGH) < 0) return; /* RLIMIT_NOFILE */
    SAY(write(near, "ab", 2));
    until_bytes(far, 2);
    set[HIGH / 64] = 1ul << HIGH % 64;
    SAY(select(HIGH + 1, (fd_set *)set, NULL, NULL, NULL));
    SAY(set[HIGH / 64] == 1ul << HIGH % 64);
    SAY(read(HIGH, text, 8));
    SAY(select(HIGH + 1, (fd_set *)set, NULL, NULL, &now));
    SAY(set[HIGH / 64]);
    SAY(close(HIGH));
    memset(usual.behind, 0xff, sizeof usual.behind);
    FD_SET(far, &usual.set);
    SAY(write(near, "cd", 2));
    until_bytes(far, 2);
    /* The table of descriptors has 2,048 places. */
    memset(usual.behind, 0, 1024 / 8);
    SAY(select(LONG, &usual.set, NULL, NULL, NULL));
    SAY(FD_ISSET(far, &usual.set));
    SAY(usual.behind[LONG / 64 - 1] == -1ul);
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

/* Bytes of the ring are behind bytes of TCP when the set gets to know of them. */
/* ring: EPOLLET EPOLL_CTL_ADD epoll_wait */
static void edges_behind_tcp(void) {
    struct epoll_event event = {EPOLLIN | EPOLLET, {.u64 = 6}}, level = {EPOLLIN}, got;
    struct iovec part = {"tcp", 3};
    char text[8];
    int set = epoll_create1(EPOLL_CLOEXEC), other = epoll_create1(EPOLL_CLOEXEC);
    SAY(epoll_ctl(other, EPOLL_CTL_ADD, far, &level));
    SAY(pwritev2(near, &part, 1, -1, 0));
    until_bytes(far, 3);
    SAY(write(near, "ring", 4));
    until_bytes(far, 7);
    SAY(read(far, text, 1));
    SAY(epoll_ctl(set, EPOLL_CTL_ADD, far, &event));
    SAY(read(far, text, 2));
    SAY(epoll_wait(set, &got, 1, 0));
    SAY(read(far, text, 8));
    SAY(epoll_wait(set, &got, 1, 0));
    close(set), close(other);
}

/* ring: EPOLLET epoll_wait poll select read */
static void edges_that_others_see(int way) {
    int set = epoll_create1(EPOLL_CLOEXEC), other = epoll_create1(EPOLL_CLOEXEC);
    struct epoll_event edges = {EPOLLIN | EPOLLET, {.u64 = 7}}, level = {EPOLLIN, {.u64 = 8}}, got[2];
    struct pollfd place = {far, POLLIN, 0};
    struct timeval none = {0, 0};
    fd_set in;
    char text[8];
    SAY(epoll_ctl(set, EPOLL_CTL_ADD, far, &edges));
    SAY(epoll_ctl(other, EPOLL_CTL_ADD, far, &level));
    for (int round = 0; round < 4; round++) {
        SAY(write(near, "1234", 4));
        until_readable(far);
        FD_ZERO(&in);
        FD_SET(far, &in);
        if (way == 0) SAY(poll(&place, 1, 0));
        if (way == 1) SAY(select(far + 1, &in, NULL, NULL, &none));
        if (way == 2) SAY(read(far, text, 2));
        SAY(epoll_wait(set, got, 2, 0));
        SAY(epoll_wait(other, got, 2, 0));
        SAY(epoll_wait(set, got, 2, 0));
        SAY(recv(far, text, 8, 0));
        SAY(epoll_wait(set, got, 2, 0));
        SAY(epoll_wait(other, got, 2, 0));
    }
    SAY(close(set));
    SAY(close(other));
}

static void *leaves_then_sends(void *unused) {
    until_waits(getpid()); /* the main thread */
    shutdown(near, SHUT_RD);
    /* The other end, which is woken, still has nothing to read. */
    usleep(50000);
    write(near, "x", 1);
    return unused;
}

/* No event without bytes: a program that does not use O_NONBLOCK would wait for them. */
/* ring: epoll_wait */
static void waits_while_the_other_end_leaves(void) {
    struct epoll_event event = {EPOLLIN, {.u64 = 5}}, got;
    int set = epoll_create1(EPOLL_CLOEXEC), bytes = -1;
    pthread_t thread;
    SAY(epoll_ctl(set, EPOLL_CTL_ADD, far, &event));
    pthread_create(&thread, NULL, leaves_then_sends, NULL);
    SAY(epoll_wait(set, &got, 1, SECONDS * 1000));
    SAY(ioctl(far, FIONREAD, &bytes));
    SAY(bytes);
    pthread_join(thread, NULL);
    close(set);
}

/* More descriptors are ready than the program has room for. */
/* ring: epoll_wait */
static void sets_with_room_for_few(int room) {
    int set = epoll_create1(EPOLL_CLOEXEC), ends[2], others[2] = {near, far}, seen = 0;
    struct epoll_event event = {EPOLLIN, {.u64 = 1}}, got[2];
    SAY(pipe2(ends, O_CLOEXEC));
    connect_both(0);
    SAY(epoll_ctl(set, EPOLL_CTL_ADD, others[1], &event));
    event.data.u64 = 2;
    SAY(epoll_ctl(set, EPOLL_CTL_ADD, far, &event));
    event.data.u64 = 4;
    SAY(epoll_ctl(set, EPOLL_CTL_ADD, ends[0], &event));
    SAY(write(others[0], "a", 1));
    SAY(write(near, "b", 1));
    SAY(write(ends[1], "c", 1));
    for (int round = 0; round < 1000; round++) {
        int count = epoll_wait(set, got, room, SECONDS * 1000);
        if (count < 1 || count > room) exit(3);
        while (count-- > 0) seen |= got[count].data.u64;
    }
    SAY(seen);
    close_both();
    near = others[0], far = others[1];
    close(set), close(ends[0]), close(ends[1]);
}

int main(void) {
    begin();
    CASE(polls());
    CASE(selects_many());
    CASE(epolls(0, 0));
    CASE(epolls(1, 0));
    CASE(epolls(0, 1));
    connect_both(1), epolls(0, 0), close_both();
    CASE(edges_of_more_bytes());
    CASE(edges_behind_tcp());
    for (int way = 0; way < 4; way++) CASE(edges_that_others_see(way));
    CASE(waits_while_the_other_end_leaves());
    CASE(sets_with_room_for_few(1));
    CASE(sets_with_room_for_few(2));
    end();
}
