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

enum { THREADS = 4, RECORDS = 2000, RECORD = 100 };

struct sums {
    _Atomic long bytes, sum;
};

static void *writes_records(void *start) {
    char record[RECORD];
    for (int number = 0; number < RECORDS; number++) {
        memset(record, (int)(long)start + number, RECORD);
        if (write(near, record, RECORD) != RECORD) exit(2);
    }
    return NULL;
}

static void *reads_bytes(void *of) {
    struct sums *sums = of;
    unsigned char bytes[300];
    long got;
    while ((got = read(far, bytes, sizeof bytes)) > 0) {
        sums->bytes += got;
        for (long place = 0; place < got; place++) sums->sum += bytes[place];
    }
    return NULL;
}

/* ring: shutdown */
static void several_threads_use_it(int writing, int reading) {
    pthread_t writers[THREADS], readers[THREADS];
    struct sums sums = {0, 0};
    for (int thread = 0; thread < reading; thread++)
        pthread_create(&readers[thread], NULL, reads_bytes, &sums);
    for (long thread = 0; thread < writing; thread++)
        pthread_create(&writers[thread], NULL, writes_records, (void *)(thread * 50));
    for (int thread = 0; thread < writing; thread++) pthread_join(writers[thread], NULL);
    SAY(shutdown(near, SHUT_WR));
    for (int thread = 0; thread < reading; thread++) pthread_join(readers[thread], NULL);
    SAY(sums.bytes);
    SAY(sums.sum);
}

static void *waits_for_bytes(void *polls) {
    struct pollfd place = {far, POLLIN, 0};
    char byte;
    if (polls && poll(&place, 1, SECONDS * 1000) != 1) return (void *)-2L;
    return (void *)recv(far, &byte, 1, 0);
}

/* Each of some threads that wait gets a byte; then the end wakes all. */
/* ring: write shutdown */
static void several_threads_wait(int polls, int bytes) {
    pthread_t threads[THREADS];
    long sum = 0;
    for (int thread = 0; thread < THREADS; thread++)
        pthread_create(&threads[thread], NULL, waits_for_bytes, polls ? &near : NULL);
    for (int byte = 0; byte < bytes; byte++) SAY(write(near, "b", 1));
    if (bytes < THREADS) SAY(shutdown(near, SHUT_WR));
    for (int thread = 0; thread < THREADS; thread++) {
        void *got;
        pthread_join(threads[thread], &got);
        sum += (long)got;
    }
    SAY(sum);
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
    CASE(several_threads_use_it(THREADS, THREADS));
    CASE(several_threads_use_it(1, THREADS));
    CASE(several_threads_use_it(THREADS, 1));
    for (int polls = 0; polls < 2; polls++) {
        CASE(several_threads_wait(polls, THREADS));
        CASE(several_threads_wait(polls, 1));
    }
    end();
}
