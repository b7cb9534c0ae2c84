/* SPDX-License-Identifier: Apache-2.0 */
/* epoll sets that change, and sets that other threads, processes, sets or descriptors use. */
#include "both_ends.h"

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

/* A set whose first descriptor is closed: events come, and go with the connection. */
/* ring: epoll_ctl epoll_wait dup dup2 F_DUPFD_CLOEXEC */
static void sets_with_a_copy(int way) {
    int set = epoll_create1(EPOLL_CLOEXEC), copy;
    struct epoll_event in = {EPOLLIN, {.u64 = 3}}, got[2];
    char text[8];
    if (way == 0) copy = dup(set);
    else copy = way == 1 ? fcntl(set, F_DUPFD_CLOEXEC, 60) : dup2(set, 61);
    SAY(epoll_ctl(set, EPOLL_CTL_ADD, far, &in));
    SAY(close(set));
    SAY(write(near, "a", 1));
    SAY(epoll_wait(copy, got, 2, SECONDS * 1000));
    SAY(recv(far, text, 8, 0));
    SAY(epoll_ctl(copy, EPOLL_CTL_DEL, far, NULL));
    SAY(write(near, "b", 1));
    until_bytes(far, 1);
    SAY(epoll_wait(copy, got, 2, 0));
    SAY(epoll_ctl(copy, EPOLL_CTL_ADD, far, &in));
    SAY(epoll_wait(copy, got, 2, 0));
    SAY(close(far));
    SAY(epoll_wait(copy, got, 2, 0));
    SAY(close(copy));
}

int main(void) {
    begin();
    for (int way = 0; way < 4; way++) CASE(sets_of_others(way));
    CASE(sets_that_change());
    for (int way = 0; way < 6; way++) CASE(changes_for_others(way));
    for (int way = 0; way < 3; way++) CASE(sets_with_a_copy(way));
    end();
}
