/* SPDX-License-Identifier: Apache-2.0 */
/* serving RESTRICTION HOW: restricts itself and answers a client, which it has started before.
 * Prints the result and errno of every read. */
#include "sandbox.h"
#include <errno.h>
#include <stdio.h>
#include <sys/socket.h>

static const char *const questions[] = {"one needle", "secret", "two needle needle"};

static void ask(int fd) {
    char answer[64];
    for (int number = 0; number < 3; number++) {
        if (send(fd, questions[number], strlen(questions[number]), 0) < 0)
            break;
        if (recv(fd, answer, sizeof answer, 0) <= 0)
            break;
    }
    _exit(0);
}

int main(int argc, char **argv) {
    int pair[2], files[2];
    char text[64], line[80];
    if (argc != 3 || socketpair(AF_UNIX, SOCK_STREAM, 0, pair) || pipe(files))
        return 2;
    if (!fork()) {
        close(pair[1]);
        ask(pair[0]);
    }
    close(pair[0]);
    restrict_to(argv[1], argv[2]);
    for (;;) {
        errno = 0;
        ssize_t got = read(pair[1], text, sizeof text);
        int length = snprintf(line, sizeof line, "%zd %d\n", got, errno);
        write(STDOUT_FILENO, line, length);
        if (got <= 0)
            break;
        write(pair[1], "an answer", 9);
    }
    leave(0);
}
