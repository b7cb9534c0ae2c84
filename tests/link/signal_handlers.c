/* SPDX-License-Identifier: Apache-2.0 */
/* signal_handlers BYTES: a thread sends, and a signal handler of the same thread sends on the same
 * connection. The receiver rests now and then, so the ring is full, and its bytes go back to TCP.
 * Bytes of the handler may be between any two others; none is lost, doubled or in another place. */
#include "calls/both_ends.h"
#include <time.h>

enum { PIECE = 300000, PERIOD = 100000 /* ns */ };

static long sent_by_handler;

static void sends_byte(int signal) {
    int error = errno, flags = sent_by_handler % 2 ? MSG_DONTWAIT : 0;
    if (send(near, "!", 1, flags | MSG_NOSIGNAL) == 1) sent_by_handler++;
    errno = error;
}

static unsigned char at(long place) { return (unsigned char)(128 | place % 127); }

static long of_handler, of_thread;

static void *receives(void *unused) {
    static unsigned char text[1 << 16];
    long length;
    for (long rounds = 0; (length = read(far, text, rounds % 8 ? sizeof text : 1000)) > 0; rounds++) {
        if (rounds % 32 == 0) usleep(3000);
        for (long place = 0; place < length; place++) {
            if (text[place] == '!') {
                of_handler++;
            } else if (text[place] != at(of_thread++)) {
                fprintf(stderr, "byte %ld is wrong\n", of_thread - 1);
                exit(3);
            }
        }
    }
    return unused;
}

int main(int count, char **words) {
    static unsigned char text[PIECE];
    if (count != 2) return 2;
    long most = atol(words[1]), sent = 0;
    sigset_t all, before;
    pthread_t receiver;
    begin();
    connect_both(0);
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before);
    pthread_create(&receiver, NULL, receives, NULL);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    struct sigaction action = {.sa_handler = sends_byte, .sa_flags = SA_RESTART};
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR2};
    struct itimerspec often = {{0, PERIOD}, {0, PERIOD}}, never = {0};
    timer_t timer;
    sigaction(SIGUSR2, &action, NULL);
    timer_create(CLOCK_MONOTONIC, &event, &timer);
    timer_settime(timer, 0, &often, NULL);
    while (sent < most) {
        for (long place = 0; place < PIECE; place++) text[place] = at(sent + place);
        long length = most - sent < PIECE ? most - sent : PIECE;
        long more = send(near, text, length, 0);
        if (more <= 0) exit(4);
        sent += more;
    }
    timer_settime(timer, 0, &never, NULL);
    shutdown(near, SHUT_WR);
    pthread_join(receiver, NULL);
    printf("%ld %ld\n", of_thread - sent, of_handler - sent_by_handler);
    return 0;
}
