/* SPDX-License-Identifier: Apache-2.0 */
/* single_steps CASE STEP: a thread makes a call on a connection, and a signal handler of the same
 * thread makes others there: behind the first instruction of the call, behind instruction 1 + STEP,
 * 1 + 2 * STEP ..., up to its end. The processor's trap flag stops the thread behind each instruction; where signals are
 * blocked, the handler waits until they are not, as a signal would.
 *
 * Each call gets bytes that follow each other in the stream, and all calls together get each byte once,
 * in this order: those of the handler before or behind those of the call. */
#include "calls/both_ends.h"
#include <stdatomic.h>
#include <ucontext.h>

enum { TRAP_FLAG = 0x100, MANY = 70000 };

static long countdown; /* instructions until the handler acts; < 0 if it has */
static void (*action)(void);
static sigset_t unblocked;

static void steps(int signal, siginfo_t *unused, void *context) {
    ucontext_t *of_call = context;
    if (countdown > 0) countdown--;
    if (countdown || sigismember(&of_call->uc_sigmask, SIGUSR1)) return;
    int error = errno;
    of_call->uc_mcontext.gregs[REG_EFL] &= ~TRAP_FLAG;
    countdown = -1;
    action();
    errno = error;
}

static void set_trap_flag(int on) {
    unsigned long flags;
    __asm__ volatile("pushfq\n\tpopq %0" : "=r"(flags)::"memory");
    flags = on ? flags | TRAP_FLAG : flags & ~(unsigned long)TRAP_FLAG;
    __asm__ volatile("pushq %0\n\tpopfq" ::"r"(flags) : "memory", "cc");
}

static void fail(const char *what) {
    fprintf(stderr, "%s (%s)\n", what, name(errno));
    exit(3);
}

/* What the calls got. */
struct got {
    long length;
    char text[MANY];
};

static struct got of_call, of_handler, rest;

static void receive(struct got *got, int fd, long most, int flags) {
    long length = recv(fd, got->text + got->length, most, flags);
    if (length < 0 && errno != EAGAIN) fail("recv");
    if (length > 0) got->length += length;
}

/* The stream of a case. */
static char stream[2 * MANY];
static long sent;

static void put(const void *text, long length) {
    memcpy(stream + sent, text, length);
    sent += length;
}

static void sends(const char *text) {
    put(text, strlen(text));
    if (send(near, text, strlen(text), 0) != strlen(text)) fail("send");
}

/* A call that uses TCP. */
static void sends_by_tcp(const char *text) {
    struct iovec part = {(void *)text, strlen(text)};
    put(text, part.iov_len);
    if (pwritev2(near, &part, 1, -1, 0) != part.iov_len) fail("pwritev2");
}

static int is_at(const struct got *got, long place) {
    return place + got->length <= sent && memcmp(got->text, stream + place, got->length) == 0;
}

/* What a call sends; the handler sends "handler". Each is in one piece in the stream. */
static char letters[2000];

/* Reads what is left, and compares all. */
static void verify(long instruction) {
    long left = sent - of_call.length - of_handler.length;
    while (rest.length < left) receive(&rest, far, left - rest.length, 0);
    long first = of_call.length + of_handler.length;
    int is_before = is_at(&of_handler, 0) && is_at(&of_call, of_handler.length);
    int is_behind = is_at(&of_call, 0) && is_at(&of_handler, of_call.length);
    if (first == 0 && rest.text[0] == 'h') {
        /* The handler's came first. */
        long others = sent - sizeof letters;
        memmove(stream + others, stream, sizeof letters);
        memcpy(stream, "handler", others);
    }
    if (!(is_before || is_behind) || !is_at(&rest, first)) {
        fprintf(stderr, "instruction %ld: call '%.20s' handler '%.20s' then '%.20s'\n", instruction,
                of_call.text, of_handler.text, rest.text);
        exit(4);
    }
}

/* Each case: what is sent before the call, the call, and what the handler does. */

static void has_bytes_in_the_ring(void) {
    sends("abcdef");
    until_bytes(far, 6);
}

/* Bytes of TCP, and of the ring behind them. */
static void has_both(void) {
    char byte;
    sends_by_tcp("12345");
    recv(far, &byte, 1, MSG_PEEK);
    sends("abcde");
}

static void receives(void) { receive(&of_call, far, 8, 0); }

static void receives_some(void) { receive(&of_handler, far, 3, MSG_DONTWAIT); }

static void receives_all_and_more_comes(void) {
    receive(&of_handler, far, 5, MSG_DONTWAIT);
    sends("fghij");
    sends_by_tcp("67890");
}

/* A peek is no part of the stream. What the handler has sent may not have come yet. */
static void peeks(void) {
    char text[7] = {0};
    long length = recv(far, text, 6, MSG_PEEK | MSG_DONTWAIT);
    int is_old = length == 6 && memcmp(text, "abcdef", 6) == 0;
    int is_new = length == 6 && memcmp(text, "zzzzzz", 6) == 0;
    int is_none = length < 0 && errno == EAGAIN && countdown < 0;
    if (!is_old && !is_new && !is_none) fail("it peeked at bytes that are not next to each other");
}

static void receives_and_the_ring_is_filled(void) {
    static char many[1 << 16];
    receive(&of_handler, far, 6, MSG_DONTWAIT);
    memset(many, 'z', sizeof many);
    long length = send(near, many, sizeof many, 0);
    if (length > 0) put(many, length);
}

/* Another thread polls the connection, and reads, while the handler waits for what it sends then. */
static atomic_int has_come, is_over;

static void *sends_later(void *unused) {
    for (;;) {
        while (!has_come && !is_over) usleep(100);
        if (is_over) return unused;
        has_come = 0;
        struct pollfd place = {far, POLLIN, 0};
        char byte;
        if (poll(&place, 1, 0) > 0 && recv(far, &byte, 1, MSG_DONTWAIT) >= 0) exit(5);
        if (send(near, "w", 1, 0) != 1) exit(5);
    }
}

static void waits(void) {
    receive(&of_handler, far, MANY, MSG_DONTWAIT);
    put("w", 1);
    has_come = 1;
    receive(&of_handler, far, 1, 0);
}

static void will_send(void) {
    memset(letters, 'c', sizeof letters);
    put(letters, sizeof letters);
}

static void sends_letters(void) {
    if (send(near, letters, sizeof letters, 0) != sizeof letters) fail("send");
}

static void sends_too(void) { sends("handler"); }

static void receives_without_waiting(void) { receive(&of_call, far, 8, MSG_DONTWAIT); }

static const struct test {
    const char *name;
    void (*before)(void), (*call)(void), (*handler)(void);
} tests[] = {
    {"both", has_both, receives, receives_some},
    {"changes", has_both, receives, receives_all_and_more_comes},
    {"peek", has_bytes_in_the_ring, peeks, receives_and_the_ring_is_filled},
    {"waits", has_bytes_in_the_ring, receives_without_waiting, waits},
    {"sends", will_send, sends_letters, sends_too},
};

static void makes_calls(const struct test *test, long step) {
    for (long instruction = 1;; instruction += step) {
        of_call.length = of_handler.length = rest.length = sent = 0;
        char byte;
        test->before();
        countdown = instruction;
        action = test->handler;
        set_trap_flag(1);
        test->call();
        set_trap_flag(0);
        verify(instruction);
        if (recv(far, &byte, 1, MSG_DONTWAIT) >= 0) fail("a byte more");
        if (countdown >= 0) return;
    }
}

int main(int count, char **words) {
    pthread_t thread;
    if (count != 3) return 2;
    begin();
    struct sigaction stepping = {.sa_sigaction = steps, .sa_flags = SA_SIGINFO | SA_RESTART};
    sigaction(SIGTRAP, &stepping, NULL);
    for (int number = 0; number < sizeof tests / sizeof *tests; number++) {
        if (strcmp(tests[number].name, words[1])) continue;
        connect_both(0);
        pthread_create(&thread, NULL, sends_later, NULL);
        makes_calls(&tests[number], atol(words[2]));
        is_over = 1;
        pthread_join(thread, NULL);
        close_both();
        return 0;
    }
    return 2;
}
