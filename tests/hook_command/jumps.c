// SPDX-License-Identifier: Apache-2.0
// A timer whose handler leaves a search for good, by siglongjmp, 40 times; then one match more.
#include <setjmp.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

enum { JUMPS = 40, KEYWORDS = 64 };

static sigjmp_buf back;
static volatile sig_atomic_t jumps;

static void leave(int signal) {
    jumps++;
    siglongjmp(back, signal);
}

static int empty(int socket) {
    char buffer[512];
    while (recv(socket, buffer, sizeof buffer, MSG_DONTWAIT) > 0) continue;
    return 0;
}

int main(void) {
    char text[8 * KEYWORDS], buffer[8 * KEYWORDS];
    int pair[2];
    sigset_t alarm;
    struct itimerval often = {{0, 3000}, {0, 3000}}, never = {{0, 0}, {0, 0}};
    for (int one = 0; one < KEYWORDS; one++) memcpy(text + 8 * one, "needle. ", 8);
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair)) return 1;
    sigemptyset(&alarm);
    sigaddset(&alarm, SIGALRM);
    signal(SIGALRM, leave);
    if (sigsetjmp(back, 1) == 0) setitimer(ITIMER_REAL, &often, 0);
    while (jumps < JUMPS) {
        sigprocmask(SIG_BLOCK, &alarm, 0);
        empty(pair[0]);
        if (write(pair[1], text, sizeof text) != sizeof text) return 1;
        sigprocmask(SIG_UNBLOCK, &alarm, 0);
        if (read(pair[0], buffer, sizeof buffer) < 0) return 1;
    }
    setitimer(ITIMER_REAL, &never, 0);
    signal(SIGALRM, SIG_IGN);
    empty(pair[0]);
    usleep(200000);  // until the ring is empty
    if (write(pair[1], "last", 4) != 4) return 1;
    return read(pair[0], buffer, 4) != 4;
}
