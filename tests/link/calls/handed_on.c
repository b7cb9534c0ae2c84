/* SPDX-License-Identifier: Apache-2.0 */
/* Connections that another program, stdio or a child uses. */
#include "both_ends.h"
#include <stdarg.h>

int __dprintf_chk(int fd, int flag, const char *format, ...);
int __vdprintf_chk(int fd, int flag, const char *format, va_list list);

static int with_check(int fd, const char *format, va_list list) {
    return __vdprintf_chk(fd, 1, format, list);
}

static void with_list(int (*print)(int, const char *, va_list), const char *format, ...) {
    va_list list;
    va_start(list, format);
    SAY(print(far, format, list));
    va_end(list);
}

static void *answer(void *arguments) {
    char byte;
    pid_t own = gettid();
    write(*(int *)arguments, &own, sizeof own);
    read(near, &byte, 1); /* waits, so that it can give back what was not read */
    return NULL;
}

/* A thread that waits for a byte at `near`. */
static pthread_t answering(void) {
    int thread_at[2];
    pthread_t thread;
    pid_t number;
    if (pipe2(thread_at, O_CLOEXEC) || pthread_create(&thread, NULL, answer, &thread_at[1]) ||
        read(thread_at[0], &number, sizeof number) != sizeof number)
        exit(2);
    until_waits(number);
    close(thread_at[0]), close(thread_at[1]);
    return thread;
}

/* for good: execlp */
static void goes_to_a_child(void) {
    char text[32] = {0};
    int out[2];
    pthread_t thread;
    SAY(pipe2(out, O_CLOEXEC));
    SAY(write(near, "for the child", 13));
    thread = answering();
    SAY(fcntl(far, F_SETFD, 0));
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        dup2(far, 0);
        dup2(out[1], 1);
        execlp("head", "head", "-c", "13", NULL);
        _exit(9);
    }
    close(out[1]);
    SAY(read(out[0], text, sizeof text));
    printf("%s %s\n", __func__, text);
    int status = -1;
    waitpid(child, &status, 0);
    SAY(status);
    SAY(write(far, "x", 1));
    pthread_join(thread, NULL);
    close(out[0]);
}

/* This process does not know how much the program writes. */
/* for good: execlp */
static void is_written_by_a_program(void) {
    char text[32] = {0};
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        dup2(far, 1);
        execlp("echo", "echo", "from the child", NULL);
        _exit(9);
    }
    int status = -1;
    waitpid(child, &status, 0);
    SAY(status);
    for (int round = 0; round < 8; round++) {
        SAY(write(far, "mine", 4));
        SAY(recv(near, text, round ? 4 : 19, MSG_WAITALL));
        SAY(write(near, "yours", 5));
        SAY(recv(far, text, 5, MSG_WAITALL));
    }
}

/* for good: fdopen */
static void goes_to_stdio(void) {
    char text[32] = {0};
    pthread_t thread;
    SAY(write(near, "a line\n", 7));
    thread = answering();
    FILE *stream = fdopen(dup(far), "r");
    SAY(fgets(text, sizeof text, stream) == text);
    printf("%s %s", __func__, text);
    SAY(write(far, "x", 1));
    pthread_join(thread, NULL);
    fclose(stream);
}

#define FORMAT "%s %d %.1f %Lf %ld %ld %ld %ld %c %.1f %.1f %.1f %.1f %.1f %.1f %.1f %.1f\n"
#define FORMATTED "tcp", 1, 2.5, 3.5L, 4L, 5L, 6L, 7L, '8', 1., 2., 3., 4., 5., 6., 7., 8.

/* To its end. */
static void prints_the_stream(int fd) {
    char text[256] = {0};
    for (long got, place = 0; (got = read(fd, text + place, sizeof text - place)) > 0;) place += got;
    printf("%s %s\n", __func__, text);
}

/* Behind bytes of the ring that were not read. */
/* for good: dprintf vdprintf __dprintf_chk __vdprintf_chk */
static void is_formatted(int how) {
    char text[8] = {0};
    SAY(write(near, "unread", 6));
    SAY(write(far, "ring ", 5));
    if (how == 0) SAY(dprintf(far, FORMAT, FORMATTED));
    if (how == 1) SAY(__dprintf_chk(far, 1, FORMAT, FORMATTED));
    if (how == 2) with_list(vdprintf, FORMAT, FORMATTED);
    if (how == 3) with_list(with_check, FORMAT, FORMATTED); /* __vdprintf_chk */
    SAY(write(far, "end", 3));
    SAY(shutdown(far, SHUT_WR));
    prints_the_stream(near);
    SAY(read(far, text, 6));
    printf("%s %s\n", __func__, text);
}

/* A descriptor that becomes stdin or stdout is read and written by libc. */
/* for good: stdin stdout */
static void is_moved_to_stdio(int how) {
    char text[8] = {0};
    int to = how == 4 ? 0 : 1, saved = dup(to);
    fflush(stdout);
    if (write(far, "ring ", 5) != 5 || write(near, "a line\n", 7) != 7) exit(2);
    if (how == 0) dup2(far, 1);
    if (how == 1) dup3(far, 1, 0);
    if (how == 2) close(1), fcntl(far, F_DUPFD, 1);
    if (how == 3) close(1), dup(far);
    if (how == 4) dup2(far, 0), fgets(text, sizeof text, stdin);
    if (how != 4) printf("printed "), fflush(stdout);
    dup2(saved, to);
    close(saved);
    printf("%s %s\n", __func__, text);
    SAY(write(far, "end", 3));
    SAY(shutdown(far, SHUT_WR));
    prints_the_stream(near);
    if (how != 4) SAY(read(far, text, 7));
}

/* for good: SCM_RIGHTS */
static void is_passed(int is_deaf) {
    char text[32] = {0};
    int pair[2];
    pthread_t thread;
    SAY(socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
    SAY(write(near, "passed", 6));
    until_bytes(far, 6);
    if (is_deaf) SAY(shutdown(far, SHUT_RD));
    thread = answering();
    char control[CMSG_SPACE(sizeof(int))] = {0}, byte = 'b';
    struct iovec part = {&byte, 1};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = control,
                             .msg_controllen = sizeof control};
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(header), &far, sizeof(int));
    SAY(sendmsg(pair[0], &message, 0));
    SAY(recvmsg(pair[1], &message, 0));
    int passed;
    memcpy(&passed, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof passed);
    SAY(close(far));
    SAY(read(passed, text, sizeof text));
    printf("%s %s\n", __func__, text);
    SAY(write(passed, "x", 1));
    pthread_join(thread, NULL);
    SAY(close(passed));
    SAY(recv(near, text, 1, 0));
    close(pair[0]), close(pair[1]);
}

/* What arrives then is an edge each time, as the kernel reports it. */
/* for good: SHUT_RD */
static void reads_no_more(void) {
    char text[16] = {0};
    struct epoll_event event = {EPOLLIN | EPOLLRDHUP | EPOLLET, {.u64 = 7}}, got[2];
    int set = epoll_create1(EPOLL_CLOEXEC);
    pthread_t thread;
    SAY(epoll_ctl(set, EPOLL_CTL_ADD, far, &event));
    SAY(write(near, "before", 6));
    SAY(epoll_wait(set, got, 2, SECONDS * 1000));
    thread = answering();
    SAY(shutdown(far, SHUT_RD));
    SAY(epoll_wait(set, got, 2, SECONDS * 1000));
    printf("%s %x\n", __func__, got[0].events);
    SAY(read(far, text, sizeof text));
    SAY(read(far, text, sizeof text));
    SAY(write(far, "x", 1));
    pthread_join(thread, NULL);
    SAY(write(near, "behind", 6));
    until_bytes(far, 6);
    SAY(epoll_wait(set, got, 2, SECONDS * 1000));
    printf("%s %x\n", __func__, got[0].events);
    SAY(read(far, text, sizeof text));
    close(set);
}

/* for good: sendfile_to_pipe */
static void sendfile_to_pipe(void) {
    char text[16];
    int ends[2];
    pthread_t thread;
    SAY(pipe2(ends, O_CLOEXEC));
    SAY(write(near, "for the pipe", 12));
    until_bytes(far, 12);
    thread = answering();
    SAY(sendfile(ends[1], far, NULL, 12));
    SAY(read(ends[0], text, sizeof text));
    SAY(write(far, "x", 1));
    pthread_join(thread, NULL);
    close(ends[0]), close(ends[1]);
}

static void *sends_the_rest(void *reader) {
    until_waits(*(pid_t *)reader);
    write(near, "cd", 2);
    return NULL;
}

/* The call waits for all bytes that it is to peek at. */
/* for good: peek_waits_for_all */
static void peek_waits_for_all(void) {
    char text[8] = {0};
    pid_t reader = gettid();
    pthread_t thread;
    SAY(write(near, "ab", 2));
    until_bytes(far, 2);
    SAY(recv(far, text, 2, MSG_PEEK | MSG_WAITALL));
    SAY(recv(far, text, 4, MSG_PEEK | MSG_WAITALL | MSG_DONTWAIT));
    pthread_create(&thread, NULL, sends_the_rest, &reader);
    SAY(recv(far, text, 4, MSG_PEEK | MSG_WAITALL));
    pthread_join(thread, NULL);
    SAY(recv(far, text, 8, 0));
    printf("%s %s\n", __func__, text);
}

/* A connection has the option of the socket that accepted it, and stays TCP. */
/* for good: SO_RCVLOWAT */
static void waits_for_more(void) {
    struct sockaddr_in address;
    char text[8] = "tcpmsg";
    int listener = listen_at(&address), least = 4;
    SAY(setsockopt(listener, SOL_SOCKET, SO_RCVLOWAT, &least, sizeof least));
    int client = connect_to(&address), accepted = accept(listener, NULL, NULL);
    for (int round = 0; round < 4; round++)
        if (write(client, text, 6) != 6 || read(accepted, text, 6) != 6 || write(accepted, text, 6) != 6 ||
            read(client, text, 6) != 6)
            exit(2);
    struct pollfd place = {accepted, POLLIN, 0};
    SAY(write(client, "abc", 3));
    SAY(poll(&place, 1, 20));
    SAY(write(client, "d", 1));
    SAY(poll(&place, 1, SECONDS * 1000));
    close(client), close(accepted), close(listener);
}

/* ring: fork */
static void forks(void) {
    char text[8] = {0};
    SAY(write(near, "12", 2));
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        if (read(far, text, 1) != 1 || write(far, "c", 1) != 1) _exit(8);
        _exit(text[0]);
    }
    int status;
    waitpid(child, &status, 0);
    SAY(WEXITSTATUS(status));
    SAY(read(near, text, 8));
    SAY(read(far, text, 8));
    SAY(write(far, "back", 4));
    SAY(read(near, text, 8));
}

int main(void) {
    begin();
    CASE(goes_to_a_child());
    CASE(is_written_by_a_program());
    CASE(goes_to_stdio());
    for (int how = 0; how < 4; how++) CASE(is_formatted(how));
    for (int how = 0; how < 5; how++) CASE(is_moved_to_stdio(how));
    CASE(is_passed(0));
    CASE(is_passed(1));
    CASE(reads_no_more());
    CASE(sendfile_to_pipe());
    CASE(peek_waits_for_all());
    waits_for_more();
    CASE(forks());
    end();
}
