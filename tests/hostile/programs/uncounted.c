/* SPDX-License-Identifier: Apache-2.0 */
/* uncounted HOW: forbids itself the tick counter while it has both ends of a connection, and waits in
 * every way for bytes. Its child does the same, then both end by HOW. */
#include <netinet/in.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static int near, far, set;

static int connects(void) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t length = sizeof address;
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    near = socket(AF_INET, SOCK_STREAM, 0);
    if (bind(listener, (struct sockaddr *)&address, length) || listen(listener, 1) ||
        getsockname(listener, (struct sockaddr *)&address, &length) ||
        connect(near, (struct sockaddr *)&address, length))
        return 0;
    far = accept(listener, NULL, NULL);
    struct epoll_event event = {.events = EPOLLIN};
    set = epoll_create1(0);
    return far >= 0 && !close(listener) && !epoll_ctl(set, EPOLL_CTL_ADD, far, &event);
}

static void await(int way) {
    struct pollfd place = {far, POLLIN, 0};
    struct epoll_event event;
    fd_set readable;
    FD_ZERO(&readable);
    FD_SET(far, &readable);
    if ((way == 1 && poll(&place, 1, -1) != 1) || (way == 2 && epoll_wait(set, &event, 1, -1) != 1) ||
        (way == 3 && select(far + 1, &readable, NULL, NULL, NULL) != 1))
        _exit(3);
}

static void talk(void) {
    char bytes[8];
    for (int number = 0; number < 16; number++) {
        if (write(near, "question", 8) != 8)
            _exit(4);
        await(number % 4);
        if (recv(far, bytes, 8, MSG_WAITALL) != 8 || write(far, "answer", 6) != 6 ||
            recv(near, bytes, 6, MSG_WAITALL) != 6)
            _exit(5);
    }
}

static void leave(const char *how) {
    if (!strcmp(how, "exit"))
        exit(0);
    if (!strcmp(how, "_exit"))
        _exit(0);
    syscall(SYS_exit_group, 0);
}

int main(int argc, char **argv) {
    int status;
    if (argc != 2 || !connects())
        return 2;
    talk();
    if (prctl(PR_SET_TSC, PR_TSC_SIGSEGV, 0, 0, 0))
        return 2;
    talk();
    pid_t child = fork();
    if (!child) {
        talk();
        leave(argv[1]);
    }
    if (waitpid(child, &status, 0) != child || status)
        _exit(6);
    talk();
    leave(argv[1]);
}
