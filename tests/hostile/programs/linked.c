/* SPDX-License-Identifier: Apache-2.0 */
/* linked RESTRICTION HOW: answers a client over TCP, which it has started before; restricts itself
 * after ROUNDS answers, once the client has sent one more question. Prints the result and errno of
 * every read. */
#include "sandbox.h"
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <sys/socket.h>

#define ROUNDS 8

static void ask(struct sockaddr_in *address, int last) {
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    char answer[64];
    if (connect(fd, (struct sockaddr *)address, sizeof *address))
        _exit(3);
    for (int number = 0; number < 2 * ROUNDS; number++) {
        if (send(fd, "question", 8, 0) != 8)
            _exit(4);
        if (number == ROUNDS)
            write(last, "", 1);
        if (recv(fd, answer, sizeof answer, 0) != 6)
            _exit(5);
    }
    _exit(0);
}

static void answer(int fd) {
    char text[64], line[80];
    errno = 0;
    ssize_t got = read(fd, text, sizeof text);
    write(STDOUT_FILENO, line, snprintf(line, sizeof line, "%zd %d\n", got, errno));
    if (got <= 0)
        leave(0);
    write(fd, "answer", 6);
}

int main(int argc, char **argv) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t length = sizeof address;
    int listener = socket(AF_INET, SOCK_STREAM, 0), last[2];
    char byte;
    if (argc != 3 || bind(listener, (struct sockaddr *)&address, length) || listen(listener, 1) ||
        getsockname(listener, (struct sockaddr *)&address, &length) || pipe(last))
        return 2;
    if (!fork())
        ask(&address, last[1]);
    int fd = accept(listener, NULL, NULL);
    for (int number = 0; number < ROUNDS; number++)
        answer(fd);
    if (read(last[0], &byte, 1) != 1)
        return 2;
    restrict_to(argv[1], argv[2]);
    for (;;)
        answer(fd);
}
