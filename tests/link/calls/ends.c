/* SPDX-License-Identifier: Apache-2.0 */
/* Copies of a descriptor, and the end of a connection. */
#include "both_ends.h"

/* ring: close */
static void closes_with_bytes_unread(void) {
    char byte;
    SAY(write(near, "unread", 6));
    until_readable(far);
    SAY(close(far));
    until_readable(near);
    SAY(read(near, &byte, 1));
    SAY(send(near, "x", 1, MSG_NOSIGNAL));
}

/* ring: SO_LINGER close */
static void resets(void) {
    char byte;
    struct linger linger = {1, 0};
    SAY(write(near, "a", 1));
    SAY(setsockopt(near, SOL_SOCKET, SO_LINGER, &linger, sizeof linger));
    SAY(close(near));
    struct pollfd place = {far, POLLIN | POLLHUP, 0};
    SAY(poll(&place, 1, SECONDS * 1000) > 0);
    SAY(read(far, &byte, 1));
    SAY(read(far, &byte, 1));
    SAY(read(far, &byte, 1));
}

/* ring: SIGPIPE write close */
static void pipes_break(void) {
    signal(SIGPIPE, SIG_IGN);
    SAY(close(far));
    until_readable(near);
    SAY(write(near, "x", 1));
    struct pollfd place = {near, POLLHUP, 0};
    poll(&place, 1, SECONDS * 1000);
    SAY(write(near, "x", 1));
    signal(SIGPIPE, SIG_DFL);
}

/* ring: dup dup2 fcntl F_DUPFD_CLOEXEC close_range */
static void duplicates(void) {
    char text[8];
    int copy = dup(far);
    SAY(write(near, "abc", 3));
    SAY(close(far));
    SAY(read(copy, text, 2));
    SAY(dup2(copy, copy) == copy);
    int other = fcntl(copy, F_DUPFD_CLOEXEC, 100);
    SAY(close(copy));
    SAY(read(other, text, 8));
    SAY(write(other, "back", 4));
    SAY(read(near, text, 8));
    SAY(close(other));
    SAY(read(near, text, 8));
    SAY(close_range(250, 150, 0));
    SAY(close_range(3000, 4000, 0));
}

int main(void) {
    begin();
    CASE(closes_with_bytes_unread());
    CASE(resets());
    CASE(pipes_break());
    CASE(duplicates());
    end();
}
