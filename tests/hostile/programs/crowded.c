/* SPDX-License-Identifier: Apache-2.0 */
/* crowded THREADS TIMES: each thread connects to itself over TCP, exchanges messages and closes what it
 * has opened, TIMES times. Where no descriptor is free, it tries the next time.
 * Prints each call whose descriptor is not what the thread has opened, and exits with 1 then. */
#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define MOST 64
#define MESSAGES 20

static int failures;

static void fails(const char *call, int fd) {
    printf("%s of descriptor %d: %s\n", call, fd, strerror(errno));
    __atomic_fetch_add(&failures, 1, __ATOMIC_RELAXED);
}

static int receives(int fd, long length) {
    char bytes[16];
    while (length > 0) {
        errno = 0;
        long got = read(fd, bytes, length);
        if (got <= 0)
            return 0;
        length -= got;
    }
    return 1;
}

/* Another thread may not get a descriptor that is closed here and was opened there. */
static void ends(int fd) {
    if (close(fd))
        fails("close", fd);
}

static void talk(int near, int far) {
    for (int number = 0; number < MESSAGES; number++) {
        if (write(near, "question", 8) != 8)
            return fails("write", near);
        if (!receives(far, 8))
            return fails("read", far);
        if (write(far, "answer", 6) != 6)
            return fails("write", far);
        if (!receives(near, 6))
            return fails("read", near);
    }
}

static void meet(int listener, int near) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t length = sizeof address;
    if (bind(listener, (struct sockaddr *)&address, length))
        return fails("bind", listener);
    if (listen(listener, 1) || getsockname(listener, (struct sockaddr *)&address, &length))
        return fails("listen", listener);
    if (connect(near, (struct sockaddr *)&address, length))
        return fails("connect", near);
    int far = accept(listener, NULL, NULL);
    if (far < 0) {
        if (errno != EMFILE)
            fails("accept", listener);
        return;
    }
    talk(near, far);
    ends(far);
}

static void *work(void *times) {
    for (long time = 0; time < (long)times; time++) {
        int listener = socket(AF_INET, SOCK_STREAM, 0);
        if (listener < 0)
            continue;
        int near = socket(AF_INET, SOCK_STREAM, 0);
        if (near >= 0) {
            meet(listener, near);
            ends(near);
        }
        ends(listener);
    }
    return NULL;
}

int main(int argc, char **argv) {
    pthread_t threads[MOST];
    int count = argc == 3 ? atoi(argv[1]) : 0;
    if (count < 1 || count > MOST)
        return 2;
    for (int number = 0; number < count; number++)
        pthread_create(&threads[number], NULL, work, (void *)atol(argv[2]));
    for (int number = 0; number < count; number++)
        pthread_join(threads[number], NULL);
    return failures > 0;
}
