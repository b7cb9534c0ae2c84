/* SPDX-License-Identifier: Apache-2.0 */
/* Calls that a signal, a cancellation or a close in another thread meets. */
#include "both_ends.h"

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

static int count_descriptors(void) {
    int count = 0;
    for (int fd = 0; fd < 1 << 17; fd++) count += fcntl(fd, F_GETFD) >= 0;
    return count;
}

static volatile pid_t reader;

static void *waits_for_ever(void *polls) {
    char byte;
    struct pollfd place = {far, POLLIN, 0};
    reader = gettid();
    if (polls) poll(&place, 1, -1);
    else read(far, &byte, 1);
    return NULL;
}

/* A link whose thread was cancelled leaves no descriptor behind. */
/* ring: pthread_cancel */
static void are_cancelled(int polls) {
    int before = count_descriptors();
    for (int round = 0; round < 6; round++) {
        pthread_t thread;
        connect_both(0);
        reader = 0;
        pthread_create(&thread, NULL, waits_for_ever, polls ? &near : NULL);
        while (!reader) usleep(1000);
        until_waits(reader);
        pthread_cancel(thread);
        pthread_join(thread, NULL);
        close_both();
    }
    SAY(count_descriptors() - before);
}

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

int main(void) {
    begin();
    CASE(signals(SA_RESTART));
    CASE(signals(0));
    CASE(is_cancelled());
    are_cancelled(0);
    are_cancelled(1);
    CASE(is_closed_while_a_thread_reads(0));
    CASE(is_closed_while_a_thread_reads(1));
    end();
}
