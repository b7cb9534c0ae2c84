/* SPDX-License-Identifier: Apache-2.0 */
/* epoll sets that report one event, until the program asks for the next one. */
#include "both_ends.h"

static int set;

static int waits(int milliseconds) {
    struct epoll_event got = {0};
    int count = epoll_wait(set, &got, 1, milliseconds);
    return count <= 0 ? count : count << 24 | got.events << 8 | got.data.u64;
}

static int asks(int operation, int fd, uint32_t events, int data) {
    struct epoll_event event = {events, {.u64 = data}};
    return epoll_ctl(set, operation, fd, &event);
}

/* ring: EPOLLONESHOT EPOLL_CTL_MOD */
static void reports_once(uint32_t more) {
    char text[8] = {0};
    set = epoll_create1(EPOLL_CLOEXEC);
    SAY(asks(EPOLL_CTL_MOD, far, EPOLLONESHOT | EPOLLIN, 4));
    SAY(waits(0));
    SAY(asks(EPOLL_CTL_ADD, far, EPOLLONESHOT | EPOLLIN | more, 5));
    SAY(waits(0));
    for (int round = 0; round < 4; round++) {
        SAY(write(near, "abc", 3));
        SAY(waits(SECONDS * 1000));
        SAY(waits(0));
        until_bytes(far, 3);
        SAY(read(far, text, 2));
        SAY(waits(0));
        SAY(write(near, "d", 1));
        until_bytes(far, 2);
        SAY(waits(0));
        SAY(asks(EPOLL_CTL_ADD, far, EPOLLONESHOT | EPOLLIN, 9));
        SAY(waits(0));
        SAY(asks(EPOLL_CTL_MOD, far, EPOLLONESHOT | EPOLLIN | more, 6 + round));
        SAY(waits(SECONDS * 1000));
        SAY(read(far, text, 8));
        SAY(waits(0));
        SAY(asks(EPOLL_CTL_MOD, far, EPOLLONESHOT | EPOLLIN | more, 7));
        SAY(waits(0));
        printf("%s %s\n", __func__, text);
    }
    SAY(epoll_ctl(set, EPOLL_CTL_DEL, far, NULL));
    SAY(write(near, "e", 1));
    until_bytes(far, 1);
    SAY(waits(0));
    SAY(asks(EPOLL_CTL_MOD, far, EPOLLONESHOT | EPOLLIN, 8));
    SAY(asks(EPOLL_CTL_ADD, far, EPOLLONESHOT | EPOLLIN | more, 8));
    SAY(waits(SECONDS * 1000));
    SAY(read(far, text, 8));
    close(set);
}

/* Bytes and room are one event. */
/* ring: EPOLLONESHOT EPOLLOUT EPOLLRDHUP */
static void reports_all_at_once(void) {
    char text[8];
    set = epoll_create1(EPOLL_CLOEXEC);
    SAY(asks(EPOLL_CTL_ADD, far, EPOLLONESHOT | EPOLLIN | EPOLLOUT | EPOLLRDHUP, 5));
    SAY(waits(SECONDS * 1000));
    SAY(waits(0));
    SAY(write(near, "abc", 3));
    until_bytes(far, 3);
    SAY(waits(0));
    SAY(asks(EPOLL_CTL_MOD, far, EPOLLONESHOT | EPOLLIN | EPOLLOUT | EPOLLRDHUP, 6));
    SAY(waits(SECONDS * 1000));
    SAY(waits(0));
    SAY(asks(EPOLL_CTL_MOD, far, EPOLLONESHOT | EPOLLRDHUP, 7));
    SAY(waits(20));
    SAY(read(far, text, 8));
    SAY(shutdown(near, SHUT_WR));
    SAY(waits(SECONDS * 1000));
    SAY(waits(20));
    SAY(asks(EPOLL_CTL_MOD, far, EPOLLONESHOT | EPOLLIN, 8));
    SAY(waits(SECONDS * 1000));
    SAY(read(far, text, 8));
    SAY(close(near));
    SAY(waits(20));
    SAY(asks(EPOLL_CTL_MOD, far, EPOLLONESHOT | EPOLLIN, 9));
    SAY(waits(SECONDS * 1000));
    SAY(waits(0));
    near = dup(far); /* CASE closes it */
    close(set);
}

/* One connection changes between sets that report once and others. */
/* ring: EPOLLONESHOT EPOLLET */
static void changes_its_kind(void) {
    static const uint32_t kinds[] = {0, EPOLLONESHOT, EPOLLET, EPOLLONESHOT | EPOLLET};
    struct epoll_event event = {EPOLLIN, {.u64 = 3}};
    char text[8];
    set = epoll_create1(EPOLL_CLOEXEC);
    SAY(epoll_ctl(set, EPOLL_CTL_ADD, far, &event));
    for (int round = 0; round < 32; round++) {
        event.events = EPOLLIN | kinds[(round * 7 + round / 5) % 4];
        event.data.u64 = round;
        SAY(epoll_ctl(set, EPOLL_CTL_MOD, far, &event));
        SAY(waits(0));
        SAY(write(near, "k", 1));
        SAY(waits(SECONDS * 1000));
        SAY(event.events & (EPOLLONESHOT | EPOLLET) ? waits(0) : 0);
        SAY(read(far, text, 8));
        SAY(waits(0));
    }
    close(set);
}

enum { THREADS = 4, MESSAGES = 2000 };
static _Atomic int received, at_once, most_at_once;

static void *serves(void *unused) {
    struct epoll_event got;
    char byte;
    while (received < MESSAGES && epoll_wait(set, &got, 1, SECONDS * 1000) == 1) {
        int others = at_once++;
        if (others > most_at_once) most_at_once = others;
        if (received < MESSAGES && got.data.u64 == 5) {
            if (recv(far, &byte, 1, MSG_DONTWAIT) != 1 || write(far, &byte, 1) != 1) _exit(3);
            received++;
        }
        if (received % 3 == 0) sched_yield();
        at_once--;
        asks(EPOLL_CTL_MOD, far, EPOLLONESHOT | (received < MESSAGES ? EPOLLIN : EPOLLOUT), 5);
    }
    return unused;
}

/* Of several threads that wait for a set, one at a time has the connection. */
/* ring: EPOLLONESHOT */
static void gives_it_to_one_thread(void) {
    pthread_t threads[THREADS];
    char byte = 't';
    received = 0, most_at_once = 0, at_once = 0;
    set = epoll_create1(EPOLL_CLOEXEC);
    SAY(asks(EPOLL_CTL_ADD, far, EPOLLONESHOT | EPOLLIN, 5));
    for (int each = 0; each < THREADS; each++) pthread_create(&threads[each], NULL, serves, NULL);
    for (int message = 0; message < MESSAGES; message++)
        if (write(near, &byte, 1) != 1 || recv(near, &byte, 1, MSG_WAITALL) != 1) _exit(4);
    for (int each = 0; each < THREADS; each++) pthread_join(threads[each], NULL);
    SAY(most_at_once);
    SAY((int)received);
    close(set);
}

/* Connections in the set before they are linked: what is known of them begins with the next call. */
/* ring: EPOLLONESHOT */
static void is_linked_in_the_set(int is_armed) {
    char text[8];
    close_both();
    connect_both(1);
    set = epoll_create1(EPOLL_CLOEXEC);
    SAY(asks(EPOLL_CTL_ADD, far, EPOLLONESHOT | EPOLLIN, 5));
    for (int round = 0; round < 6; round++) {
        SAY(write(near, "abc", 3));
        if (!is_armed) SAY(waits(SECONDS * 1000));
        until_bytes(far, 3);
        if (is_armed) SAY(waits(SECONDS * 1000));
        SAY(read(far, text, 8));
        if (is_armed) SAY(asks(EPOLL_CTL_MOD, far, EPOLLONESHOT | EPOLLIN, 5));
        SAY(write(far, text, 3));
        SAY(read(near, text, 8));
        SAY(waits(0));
        if (!is_armed) SAY(asks(EPOLL_CTL_MOD, far, EPOLLONESHOT | EPOLLIN, 5));
    }
    carry(near, far);
    SAY(write(near, "z", 1));
    SAY(waits(SECONDS * 1000));
    SAY(waits(0));
    SAY(read(far, text, 8));
    close(set);
    for (int round = 0; round < 8; round++) carry(near, far);
}

/* Something else in the set has the same data: the program cannot tell their events apart. */
/* for good: one_shot_with_data_of_another */
static void one_shot_with_data_of_another(int is_first) {
    struct epoll_event event = {EPOLLIN, {.u64 = 5}};
    int pair[2];
    char text[8];
    set = epoll_create1(EPOLL_CLOEXEC);
    if (pipe(pair)) exit(2);
    if (!is_first) SAY(epoll_ctl(set, EPOLL_CTL_ADD, pair[0], &event));
    SAY(asks(EPOLL_CTL_ADD, far, EPOLLONESHOT | EPOLLIN, 5));
    if (is_first) SAY(epoll_ctl(set, EPOLL_CTL_ADD, pair[0], &event));
    for (int round = 0; round < 4; round++) {
        SAY(write(near, "abc", 3));
        SAY(waits(SECONDS * 1000));
        SAY(waits(0));
        SAY(write(pair[1], "abc", 3));
        SAY(waits(SECONDS * 1000));
        SAY(read(pair[0], text, 8));
        SAY(read(far, text, 8));
        SAY(asks(EPOLL_CTL_MOD, far, EPOLLONESHOT | EPOLLIN, 5));
    }
    close(set), close(pair[0]), close(pair[1]);
}

/* A child waits for the same set. */
/* for good: one_shot_in_two_processes */
static void one_shot_in_two_processes(void) {
    char text[8];
    set = epoll_create1(EPOLL_CLOEXEC);
    SAY(asks(EPOLL_CTL_ADD, far, EPOLLONESHOT | EPOLLIN, 5));
    SAY(write(near, "a", 1));
    SAY(waits(SECONDS * 1000));
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        SAY(waits(0));
        SAY(read(far, text, 8));
        SAY(asks(EPOLL_CTL_MOD, far, EPOLLONESHOT | EPOLLIN, 6));
        SAY(write(near, "b", 1));
        SAY(waits(SECONDS * 1000));
        fflush(stdout);
        _exit(0);
    }
    SAY(waitpid(child, NULL, 0) == child);
    SAY(waits(0));
    SAY(asks(EPOLL_CTL_MOD, far, EPOLLONESHOT | EPOLLIN, 7));
    SAY(waits(SECONDS * 1000));
    SAY(read(far, text, 8));
    SAY(asks(EPOLL_CTL_MOD, far, EPOLLONESHOT | EPOLLIN, 7));
    SAY(waits(0));
    close(set);
}

int main(void) {
    begin();
    CASE(reports_once(0));
    CASE(reports_once(EPOLLET));
    CASE(reports_all_at_once());
    CASE(changes_its_kind());
    CASE(gives_it_to_one_thread());
    CASE(is_linked_in_the_set(0));
    CASE(is_linked_in_the_set(1));
    CASE(one_shot_with_data_of_another(0));
    CASE(one_shot_with_data_of_another(1));
    CASE(one_shot_in_two_processes());
    end();
}
