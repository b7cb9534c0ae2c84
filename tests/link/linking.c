/* SPDX-License-Identifier: Apache-2.0 */
/* linking WAY ROUNDS: what meets a connection in the moment in which it is linked: `set`, a thread that
 * adds it to an epoll set; `handler`, a signal handler that sends. */
#include "calls/both_ends.h"
#include <stdatomic.h>

static atomic_int is_over, is_time;
static int set;
static pid_t waiter;

static void exchange(int one, int other) {
    char byte = 'f';
    for (int round = 0; round < 4; round++)
        if (write(one, &byte, 1) != 1 || read(other, &byte, 1) != 1 ||
            write(other, &byte, 1) != 1 || read(one, &byte, 1) != 1)
            exit(2);
}

static void *sends_when_it_sleeps(void *fd) {
    until_waits(waiter);
    if (write(*(int *)fd, "s", 1) != 1) exit(2);
    return NULL;
}

/* A thread that sleeps in the set is woken by a byte. */
static void wakes(int fd) {
    struct epoll_event got;
    pthread_t thread;
    pthread_create(&thread, NULL, sends_when_it_sleeps, &fd);
    if (epoll_wait(set, &got, 1, SECONDS * 1000) != 1) exit(3);
    pthread_join(thread, NULL);
}

static void *adds(void *unused) {
    struct epoll_event event = {EPOLLIN};
    while (!is_time) {}
    for (int spins = rand() % 30000; spins > 0; spins--) atomic_signal_fence(memory_order_seq_cst);
    if (epoll_ctl(set, EPOLL_CTL_ADD, far, &event)) exit(2);
    return unused;
}

static void is_added(void) {
    pthread_t thread;
    char byte;
    set = epoll_create1(EPOLL_CLOEXEC);
    connect_both(1);
    is_time = 0;
    pthread_create(&thread, NULL, adds, NULL);
    is_time = 1;
    exchange(near, far);
    pthread_join(thread, NULL);
    wakes(near);
    if (read(far, &byte, 1) != 1) exit(2);
    close(set), close_both();
}

static atomic_int current;

static void sends(int signal) {
    int error = errno, fd = current;
    if (fd > 0) send(fd, "h", 1, MSG_DONTWAIT | MSG_NOSIGNAL);
    errno = error;
}

static void *interrupts(void *thread) {
    while (!is_over) {
        pthread_kill(*(pthread_t *)thread, SIGUSR2);
        usleep(20);
    }
    return NULL;
}

/* The next byte that no handler has sent. */
static void receive(int fd) {
    char byte = 'h';
    while (byte == 'h') {
        long got = read(fd, &byte, 1);
        if (got != 1 && errno != EINTR) exit(2);
    }
}

static void is_interrupted(void) {
    connect_both(1);
    current = near;
    for (int round = 0; round < 4; round++) {
        if (write(near, "f", 1) != 1) exit(2);
        receive(far);
        if (write(far, "f", 1) != 1) exit(2);
        receive(near);
    }
    current = 0;
    close_both();
}

int main(int count, char **words) {
    if (count != 3) return 2;
    int rounds = atoi(words[2]);
    begin();
    waiter = getpid();
    if (!strcmp(words[1], "set")) {
        while (rounds-- > 0) is_added();
    } else {
        pthread_t self = pthread_self(), thread;
        struct sigaction action = {.sa_handler = sends, .sa_flags = SA_RESTART};
        sigaction(SIGUSR2, &action, NULL);
        pthread_create(&thread, NULL, interrupts, &self);
        while (rounds-- > 0) is_interrupted();
        is_over = 1;
        pthread_join(thread, NULL);
    }
}
