/* SPDX-License-Identifier: Apache-2.0 */
/* linking WAY ROUNDS: what meets a connection in the moment in which it is linked: `set`, a thread that
 * adds it to an epoll set; `handler`, a signal handler that sends; `stranger`, a socket
 * with the name of the other end's, on which nobody takes the link. */
#include "calls/both_ends.h"
#include <stdatomic.h>
#include <stddef.h>
#include <sys/un.h>

static atomic_int is_over, is_time;
static int set;
static pid_t waiter;

static void exchange(int client, int accepted) {
    char byte = 'f';
    for (int round = 0; round < 4; round++)
        if (write(client, &byte, 1) != 1 || read(accepted, &byte, 1) != 1 ||
            write(accepted, &byte, 1) != 1 || read(client, &byte, 1) != 1)
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
    carry(near, far);
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

static void put(char *text, const struct sockaddr_in *end) {
    const unsigned char *address = (void *)&end->sin_addr, *port = (void *)&end->sin_port;
    text += sprintf(text, "00000000000000000000ffff");
    sprintf(text, "%02x%02x%02x%02x%02x%02x", address[0], address[1], address[2], address[3], port[0],
            port[1]);
}

/* The socket on which the library of `fd` would wait for the other end. */
static int meeting(int fd) {
    struct sockaddr_in own, other;
    struct sockaddr_un name = {AF_UNIX};
    socklen_t length = sizeof own;
    char own_text[40], other_text[40];
    if (getsockname(fd, (void *)&own, &length) || getpeername(fd, (void *)&other, &length)) exit(2);
    put(own_text, &own), put(other_text, &other);
    int is_low = strcmp(own_text, other_text) < 0;
    int size = snprintf(name.sun_path + 1, sizeof name.sun_path - 1, "tare-link1/%s%s",
                        is_low ? own_text : other_text, is_low ? other_text : own_text);
    int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (bind(listener, (void *)&name, offsetof(struct sockaddr_un, sun_path) + 1 + size) ||
        listen(listener, 1))
        exit(2);
    return listener;
}

static void *hangs_up(void *listener) {
    int come;
    is_time = 1;
    while ((come = accept(*(int *)listener, NULL, NULL)) < 0) {}
    close(come);
    return NULL;
}

/* Other links of the set still wake it. */
static void meets_strangers(int rounds) {
    struct epoll_event event = {EPOLLIN}, got;
    char byte;
    set = epoll_create1(EPOLL_CLOEXEC);
    connect_both(0);
    int ends[2] = {near, far};
    for (int end = 0; end < 2; end++) epoll_ctl(set, EPOLL_CTL_ADD, ends[end], &event);
    for (int round = 0; round < 16; round++) {
        int end = round % 2;
        if (write(ends[1 - end], "w", 1) != 1 || epoll_wait(set, &got, 1, SECONDS * 1000) != 1 ||
            read(ends[end], &byte, 1) != 1)
            exit(2);
    }
    for (int round = 0; round < rounds; round++) {
        pthread_t thread;
        connect_both(1);
        epoll_ctl(set, EPOLL_CTL_ADD, near, &event);
        int listener = meeting(far);
        is_time = 0;
        pthread_create(&thread, NULL, hangs_up, &listener);
        while (!is_time) {}
        if (write(near, "x", 1) != 1) exit(2);
        pthread_join(thread, NULL);
        close(listener), close_both();
    }
    for (int end = 0; end < 2; end++) {
        if (epoll_wait(set, &got, 1, 0) != 0) exit(4);
        wakes(ends[1 - end]);
        if (read(ends[end], &byte, 1) != 1) exit(2);
    }
}

int main(int count, char **words) {
    if (count != 3) return 2;
    int rounds = atoi(words[2]);
    begin();
    waiter = getpid();
    if (!strcmp(words[1], "set")) {
        while (rounds-- > 0) is_added();
    } else if (!strcmp(words[1], "stranger")) {
        meets_strangers(rounds);
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
