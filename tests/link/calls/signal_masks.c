/* SPDX-License-Identifier: Apache-2.0 */
/* Waits with a mask of signals, and epoll sets that wake one waiter only. */
#include "both_ends.h"

static volatile sig_atomic_t handled;
static int set;

static void handles(int signal) { handled++; }

/* How many descriptors are ready, with this mask, in at most this number of milliseconds. */
static int waits(const char *way, const sigset_t *mask, int milliseconds) {
    struct timespec time = {milliseconds / 1000, milliseconds % 1000 * 1000000};
    struct pollfd place = {far, POLLIN, 0};
    struct epoll_event got;
    fd_set in;
    FD_ZERO(&in);
    FD_SET(far, &in);
    if (!strcmp(way, "ppoll")) return ppoll(&place, 1, &time, mask);
    if (!strcmp(way, "pselect")) return pselect(far + 1, &in, NULL, NULL, &time, mask);
    if (!strcmp(way, "epoll_pwait")) return epoll_pwait(set, &got, 1, milliseconds, mask);
    return epoll_pwait2(set, &got, 1, &time, mask);
}

static void *sends_a_signal(void *thread) {
    until_waits(getpid()); /* the main thread */
    pthread_kill(*(pthread_t *)thread, SIGUSR1);
    return NULL;
}

static void *sends_a_byte(void *unused) {
    until_waits(getpid());
    write(near, "b", 1);
    return unused;
}

/* ring: ppoll pselect epoll_pwait epoll_pwait2 */
static void masks_let_a_signal_in(const char *way) {
    struct sigaction action = {.sa_handler = handles};
    struct epoll_event event = {EPOLLIN, {.u64 = 4}};
    pthread_t self = pthread_self(), thread;
    sigset_t blocked, open;
    char text[8];
    set = epoll_create1(EPOLL_CLOEXEC), handled = 0;
    SAY(epoll_ctl(set, EPOLL_CTL_ADD, far, &event));
    sigaction(SIGUSR1, &action, NULL);
    sigemptyset(&blocked), sigaddset(&blocked, SIGUSR1);
    SAY(sigprocmask(SIG_BLOCK, &blocked, &open));
    sigdelset(&open, SIGUSR1);
    SAY(waits(way, NULL, 5));
    /* It was pending before. */
    SAY(raise(SIGUSR1));
    SAY(handled);
    SAY(waits(way, &blocked, 5));
    SAY(handled);
    SAY(waits(way, &open, SECONDS * 1000));
    SAY(handled);
    SAY(waits(way, &open, 5));
    /* It comes during the wait. */
    pthread_create(&thread, NULL, sends_a_signal, &self);
    SAY(waits(way, &open, SECONDS * 1000));
    pthread_join(thread, NULL);
    SAY(handled);
    /* Bytes come, and the signal stays blocked. */
    pthread_create(&thread, NULL, sends_a_byte, NULL);
    SAY(raise(SIGUSR1));
    SAY(waits(way, &blocked, SECONDS * 1000));
    pthread_join(thread, NULL);
    SAY(handled);
    SAY(read(far, text, 8));
    SAY(waits(way, NULL, 5));
    /* Afterwards the mask is the old one. */
    SAY(sigprocmask(SIG_BLOCK, NULL, &blocked));
    SAY(sigismember(&blocked, SIGUSR1));
    SAY(sigprocmask(SIG_UNBLOCK, &blocked, NULL));
    SAY(handled);
    close(set);
}

/* ring: EPOLLONESHOT */
static void sets_that_report_once(void) {
    struct epoll_event event = {EPOLLIN | EPOLLONESHOT, {.u64 = 5}}, got;
    char text[8] = {0};
    set = epoll_create1(EPOLL_CLOEXEC);
    SAY(epoll_ctl(set, EPOLL_CTL_ADD, far, &event));
    for (int round = 0; round < 4; round++) {
        SAY(write(near, "abc", 3));
        SAY(epoll_wait(set, &got, 1, SECONDS * 1000));
        SAY(got.events << 8 | got.data.u64);
        SAY(epoll_wait(set, &got, 1, 0));
        SAY(read(far, text, 2));
        SAY(epoll_wait(set, &got, 1, 0));
        SAY(epoll_ctl(set, EPOLL_CTL_MOD, far, &event));
        SAY(epoll_wait(set, &got, 1, SECONDS * 1000));
        SAY(read(far, text + 2, 6));
        SAY(epoll_ctl(set, EPOLL_CTL_MOD, far, &event));
        SAY(epoll_wait(set, &got, 1, 0));
        printf("%s %s\n", __func__, text);
    }
    close(set);
}

/* for good: EPOLLEXCLUSIVE */
static void sets_that_wake_one(void) {
    struct epoll_event event = {EPOLLIN | EPOLLEXCLUSIVE, {.u64 = 6}}, got;
    char text[8] = {0};
    int other = epoll_create1(EPOLL_CLOEXEC);
    set = epoll_create1(EPOLL_CLOEXEC);
    SAY(epoll_ctl(set, EPOLL_CTL_ADD, far, &event));
    SAY(epoll_ctl(other, EPOLL_CTL_ADD, far, &event));
    SAY(epoll_ctl(set, EPOLL_CTL_MOD, far, &event));
    for (int round = 0; round < 4; round++) {
        SAY(write(near, "abc", 3));
        SAY(epoll_wait(set, &got, 1, SECONDS * 1000));
        SAY(got.events << 8 | got.data.u64);
        SAY(read(far, text, 8));
        printf("%s %s\n", __func__, text);
        SAY(epoll_wait(set, &got, 1, 0));
    }
    close(set), close(other);
}

int main(void) {
    begin();
    CASE(masks_let_a_signal_in("ppoll"));
    CASE(masks_let_a_signal_in("pselect"));
    CASE(masks_let_a_signal_in("epoll_pwait"));
    CASE(masks_let_a_signal_in("epoll_pwait2"));
    CASE(sets_that_report_once());
    CASE(sets_that_wake_one());
    end();
}
