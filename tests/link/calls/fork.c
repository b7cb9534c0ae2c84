/* SPDX-License-Identifier: Apache-2.0 */
/* Connections that several processes have after a fork: the last one that closes its descriptors ends
 * the connection. */
#include "both_ends.h"

/* A child that does the next thing when it gets a byte, and answers with one. */
static int orders[2], answers[2];

static void wait_for_order(void) {
    char byte;
    if (read(orders[0], &byte, 1) != 1) _exit(7);
}

static void answer(void) {
    if (write(answers[1], "a", 1) != 1) _exit(7);
}

static void order(void) {
    if (write(orders[1], "o", 1) != 1) exit(2);
}

static void wait_for_answer(void) {
    char byte;
    if (read(answers[0], &byte, 1) != 1) exit(2);
}

static pid_t forks(void) {
    if (pipe2(orders, O_CLOEXEC) || pipe2(answers, O_CLOEXEC)) exit(2);
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) close(near), alarm(SECONDS);
    return child;
}

static void is_over(pid_t child) {
    int status = -1;
    for (int end = 0; end < 2; end++) close(orders[end]), close(answers[end]);
    waitpid(child, &status, 0);
    SAY(status);
}

enum { CLOSE, CLOSE_RANGE, DUP2, COPIES };

static void closes(int fd, int way) {
    int copy;
    switch (way) {
    case CLOSE: close(fd); break;
    case CLOSE_RANGE: close_range(fd, fd, 0); break;
    case DUP2: dup2(orders[0], fd); break;
    default: copy = dup(fd), close(fd), fcntl(copy, F_DUPFD, 60), close(copy), close_range(60, 60, 0);
    }
}

/* The child still lives when this process closes what the child has closed. */
/* ring: close */
static void closes_after_a_child_that_lives(int way) {
    char text[8];
    SAY(write(near, "unread", 6));
    until_bytes(far, 6);
    pid_t child = forks();
    if (child == 0) {
        closes(far, way);
        answer(), wait_for_order();
        _exit(0);
    }
    wait_for_answer();
    SAY(recv(far, text, 1, MSG_PEEK));
    SAY(close(far));
    SAY(recv(near, text, 8, 0));
    order();
    is_over(child);
}

/* Of this process and its child, the child has the connection longer. */
/* ring: close _exit */
static void closes_before_a_child_that_lives(int exits) {
    char text[8];
    SAY(write(near, "unread", 6));
    until_bytes(far, 6);
    pid_t child = forks();
    if (child == 0) {
        wait_for_order();
        if (exits) _exit(0);
        close(far), answer(), wait_for_order();
        _exit(0);
    }
    SAY(close(far));
    SAY(recv(near, text, 8, MSG_DONTWAIT));
    SAY(write(near, "more", 4));
    order();
    if (!exits) wait_for_answer();
    SAY(recv(near, text, 8, 0));
    order();
    is_over(child);
}

/* The bytes that the other end has not read are not lost when it needs TCP. */
/* ring: close */
static void leaves_bytes_unread(int child_is_last) {
    char text[16] = {0};
    SAY(write(far, "unread", 6));
    until_bytes(near, 6);
    pid_t child = forks();
    if (child == 0) {
        if (child_is_last) wait_for_order();
        close(far), answer(), wait_for_order();
        _exit(0);
    }
    if (child_is_last) close(far), order();
    wait_for_answer();
    if (!child_is_last) close(far);
    FILE *stream = fdopen(dup(near), "r");
    SAY(fread(text, 1, sizeof text, stream));
    SAY(ferror(stream) != 0);
    fclose(stream);
    printf("%s %s\n", __func__, text);
    order();
    is_over(child);
}

/* A child that has ended, and one of its own that has closed the connection. */
/* ring: fork close */
static void closes_after_a_grandchild(void) {
    char text[8];
    SAY(write(near, "unread", 6));
    until_bytes(far, 6);
    pid_t child = forks();
    if (child == 0) {
        if (fork() == 0) {
            close(far), answer(), wait_for_order();
        }
        _exit(0);
    }
    wait_for_answer();
    waitpid(child, NULL, 0);
    SAY(close(far));
    SAY(recv(near, text, 8, 0));
    order();
}

/* A process that is killed has the connection no more. */
/* ring: close */
static void closes_after_a_child_that_was_killed(int number) {
    char text[8];
    SAY(write(near, "unread", 6));
    until_bytes(far, 6);
    for (; number > 0; number--) {
        pid_t child = forks();
        if (child == 0) {
            answer(), wait_for_order();
            _exit(0);
        }
        wait_for_answer();
        kill(child, SIGKILL);
        is_over(child);
    }
    SAY(recv(far, text, 1, MSG_PEEK));
    SAY(close(far));
    SAY(recv(near, text, 8, 0));
}

/* More children than processes that a link knows of at a time, one after the other. */
/* ring: close */
static void closes_after_many_children(void) {
    enum { MANY = 12 };
    char text[8];
    pid_t children[MANY];
    int first[2];
    SAY(write(near, "unread", 6));
    until_bytes(far, 6);
    if (pipe2(first, O_CLOEXEC)) exit(2);
    for (int number = 0; number < 2 * MANY; number++) {
        pid_t child = forks();
        if (child == 0) {
            close(far), answer();
            if (number % 2) _exit(0);
            close(first[1]), read(first[0], text, 1);
            _exit(0);
        }
        wait_for_answer();
        if (number % 2) waitpid(child, NULL, 0);
        else children[number / 2] = child;
        for (int end = 0; end < 2; end++) close(orders[end]), close(answers[end]);
    }
    SAY(close(far));
    SAY(recv(near, text, 8, 0));
    close(first[0]), close(first[1]);
    for (int number = 0; number < MANY; number++) waitpid(children[number], NULL, 0);
}

/* A child waits in a set that it has inherited, for a connection that its parent closes. */
/* for good: waits_in_an_inherited_set */
static void waits_in_an_inherited_set(int is_late) {
    int set = epoll_create1(EPOLL_CLOEXEC);
    struct epoll_event event = {EPOLLIN, {.u64 = 5}}, got;
    char text[8] = {0};
    SAY(epoll_ctl(set, EPOLL_CTL_ADD, far, &event));
    pid_t child = forks();
    if (child == 0) {
        if (!is_late) wait_for_order();
        if (epoll_wait(set, &got, 1, SECONDS * 1000) != 1 || got.data.u64 != 5) _exit(3);
        if (read(far, text, 8) != 4 || strcmp(text, "late")) _exit(4);
        if (epoll_wait(set, &got, 1, 0) != 0) _exit(5);
        _exit(write(far, "done", 4) != 4);
    }
    if (is_late) until_waits(child);
    SAY(close(far));
    if (!is_late) order();
    SAY(write(near, "late", 4));
    SAY(read(near, text, 4));
    is_over(child);
    close(set);
}

/* Alone again, this process has all calls as before. */
/* ring: write read poll */
static void goes_on_alone(void) {
    char text[8];
    struct pollfd place = {far, POLLIN, 0};
    pid_t child = forks();
    if (child == 0) {
        close(far), answer(), wait_for_order();
        _exit(0);
    }
    wait_for_answer();
    for (int round = 0; round < 4; round++) {
        SAY(write(near, "there", 5));
        SAY(poll(&place, 1, SECONDS * 1000));
        SAY(read(far, text, 8));
        SAY(write(far, "back", 4));
        SAY(read(near, text, 8));
        SAY(fcntl(far, F_SETFL, round % 2 ? 0 : O_NONBLOCK));
        if (round % 2 == 0) SAY(read(far, text, 8));
    }
    order();
    is_over(child);
    SAY(close(far));
    SAY(read(near, text, 8));
}

int main(void) {
    begin();
    for (int way = CLOSE; way <= COPIES; way++) CASE(closes_after_a_child_that_lives(way));
    CASE(closes_before_a_child_that_lives(0));
    CASE(closes_before_a_child_that_lives(1));
    CASE(leaves_bytes_unread(0));
    CASE(leaves_bytes_unread(1));
    CASE(closes_after_a_grandchild());
    CASE(closes_after_a_child_that_was_killed(1));
    CASE(closes_after_a_child_that_was_killed(24));
    CASE(closes_after_many_children());
    CASE(waits_in_an_inherited_set(0));
    CASE(waits_in_an_inherited_set(1));
    CASE(goes_on_alone());
    end();
}
