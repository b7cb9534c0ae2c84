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

/* ring: dup3 */
static void refused_copies(void) {
    char text[8];
    SAY(write(near, "abc", 3));
    until_bytes(far, 3);
    SAY(dup3(near, far, O_APPEND));
    SAY(read(far, text, 8));
}

/* A process ends that has not read all bytes. */
/* ring: exit _exit */
static void exits_with_bytes_unread(int at_once) {
    struct sockaddr_in address;
    char text[8] = "w";
    int listener = listen_at(&address);
    fflush(stdout);
    pid_t child = fork();
    int fd = child ? accept4(listener, NULL, NULL, SOCK_CLOEXEC) : connect_to(&address);
    connections++;
    for (int round = 0; round < 16; round++)
        if ((round + !child) % 2 ? read(fd, text, 1) != 1 : write(fd, text, 1) != 1) exit(2);
    if (child == 0) {
        until_bytes(fd, 6);
        if (at_once) _exit(0);
        exit(0);
    }
    write(fd, "unread", 6);
    int status = -1;
    waitpid(child, &status, 0);
    SAY(status);
    SAY(recv(fd, text, 8, 0));
    SAY(recv(fd, text, 8, 0));
    close(fd), close(listener);
}

/* Nobody else has the connection any more. */
/* ring: fork close */
static void closes_after_a_child(void) {
    char text[8];
    int wait_for[2];
    SAY(write(near, "unread", 6));
    until_bytes(far, 6);
    SAY(pipe2(wait_for, O_CLOEXEC));
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        close(wait_for[1]);
        read(wait_for[0], text, 1);
        _exit(0);
    }
    SAY(recv(far, text, 1, MSG_PEEK));
    close(wait_for[0]), close(wait_for[1]);
    waitpid(child, NULL, 0);
    SAY(close(far));
    SAY(recv(near, text, 8, 0));
}

/* A child reads what its parent has closed before. */
/* ring: _Fork fork close */
static void closes_before_a_child(int way) {
    char text[8];
    int wait_for[2];
    SAY(write(near, "unread", 6));
    until_bytes(far, 6);
    SAY(pipe2(wait_for, O_CLOEXEC));
    fflush(stdout);
    pid_t child = way ? _Fork() : fork();
    if (child == 0) {
        close(wait_for[1]);
        read(wait_for[0], text, 1);
        _exit(read(far, text, 8));
    }
    SAY(close(far));
    close(wait_for[0]), close(wait_for[1]);
    int status = -1;
    waitpid(child, &status, 0);
    SAY(WEXITSTATUS(status));
    SAY(recv(near, text, 8, 0));
}

/* A child uses a connection that was opened before, and ends; at last nothing is unread. */
/* ring: fork close */
static void closes_what_a_child_had(void) {
    struct sockaddr_in address;
    char text[16];
    int listener = listen_at(&address), client = connect_to(&address);
    int accepted = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    SAY(write(client, "12345678", 8));
    until_bytes(accepted, 8);
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        if (read(accepted, text, 2) != 2 || write(accepted, "c", 1) != 1) _exit(3);
        _exit(0);
    }
    int status = -1;
    waitpid(child, &status, 0);
    SAY(status);
    SAY(read(accepted, text, 16));
    SAY(read(client, text, 1));
    SAY(close(accepted));
    SAY(recv(client, text, 8, 0));
    close(client), close(listener);
}

static char many[1 << 20];

/* Until the kernel takes no more. */
static long fill(void) {
    long sent, all = 0;
    fcntl(near, F_SETFL, O_NONBLOCK);
    while ((sent = write(near, many, sizeof many)) > 0) all += sent;
    return all;
}

static volatile sig_atomic_t broken;

static void breaks(int signal) { broken++; }

/* ring: shutdown SIGPIPE write send writev poll */
static void sends_behind_the_end(void) {
    signal(SIGPIPE, breaks);
    struct iovec part = {"x", 1};
    struct pollfd place = {near, POLLOUT, 0};
    long all = fill(), got;
    SAY(shutdown(near, SHUT_WR));
    SAY(write(near, "x", 1));
    SAY(broken);
    SAY(send(near, "x", 1, MSG_NOSIGNAL));
    SAY(broken);
    SAY(writev(near, &part, 1));
    SAY(broken);
    SAY(poll(&place, 1, SECONDS * 1000));
    SAY(place.revents);
    while ((got = read(far, many, sizeof many)) > 0) all -= got;
    SAY(all);
    signal(SIGPIPE, SIG_DFL);
}

/* A call that waits for room gives up; what it took comes. */
/* ring: SO_SNDTIMEO write */
static void has_no_room_in_time(void) {
    struct timeval time = {.tv_usec = 20000}, never = {0, 0};
    long all = 0, got;
    SAY(setsockopt(near, SOL_SOCKET, SO_SNDTIMEO, &time, sizeof time));
    while ((got = write(near, many, sizeof many)) > 0) all += got;
    SAY(got);
    SAY(all > 0);
    while (all > 0 && (got = read(far, many, sizeof many)) > 0) all -= got;
    SAY(all);
    SAY(write(near, "more", 4));
    SAY(recv(far, many, 4, MSG_WAITALL));
    SAY(setsockopt(near, SOL_SOCKET, SO_SNDTIMEO, &never, sizeof never));
    SAY(write(near, "last", 4));
    SAY(recv(far, many, 4, MSG_WAITALL));
}

/* The option is set while TCP does not take all bytes. */
/* ring: SO_LINGER close */
static void resets_with_many_bytes(void) {
    struct linger linger = {1, 0};
    fill();
    SAY(setsockopt(near, SOL_SOCKET, SO_LINGER, &linger, sizeof linger));
    SAY(close(near));
    long got;
    while ((got = read(far, many, sizeof many)) > 0) {}
    SAY(got);
}

/* No other thread has the descriptors. */
/* ring: close_range CLOSE_RANGE_UNSHARE */
static void closes_its_own_table(void) {
    char byte;
    SAY(close_range(far, far, CLOSE_RANGE_UNSHARE | 128));
    SAY(write(far, "x", 1));
    SAY(read(near, &byte, 1));
    SAY(close_range(far, far, CLOSE_RANGE_UNSHARE));
    SAY(read(near, &byte, 1));
}

int main(void) {
    begin();
    CASE(closes_with_bytes_unread());
    CASE(resets());
    CASE(pipes_break());
    CASE(duplicates());
    CASE(refused_copies());
    exits_with_bytes_unread(0);
    exits_with_bytes_unread(1);
    for (int times = 0; times < 8; times++) CASE(closes_after_a_child());
    CASE(closes_before_a_child(0));
    CASE(closes_before_a_child(1));
    closes_what_a_child_had();
    buffers = 4096;
    CASE(sends_behind_the_end());
    CASE(resets_with_many_bytes());
    CASE(has_no_room_in_time());
    buffers = 0;
    CASE(closes_its_own_table());
    end();
}
