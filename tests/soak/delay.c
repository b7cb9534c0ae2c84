// SPDX-License-Identifier: Apache-2.0
// Delays a real service by a known time: every successful read from a socket takes DELAY_NS more.
// Preloaded as an `env` layer; built with cc -O2 -shared -fPIC delay.c -o delay.so -ldl.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static long delay_ns;

// Read at the start: nginx gives its workers another environment.
__attribute__((constructor)) static void read_delay(void) {
    const char *text = getenv("DELAY_NS");
    delay_ns = text ? atol(text) : 0;
}

static long now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000000000L + now.tv_nsec;
}

// Busy: a sleeping thread would be late by what the scheduler takes, which is not known.
static void delay(void) {
    if (delay_ns == 0) return;
    int before = errno;
    long until = now_ns() + delay_ns;
    while (now_ns() < until) {}
    errno = before;
}

ssize_t recv(int fd, void *buffer, size_t length, int flags) {
    static ssize_t (*next)(int, void *, size_t, int);
    if (!next) next = dlsym(RTLD_NEXT, "recv");
    ssize_t count = next(fd, buffer, length, flags);
    if (count > 0) delay();
    return count;
}

ssize_t read(int fd, void *buffer, size_t length) {
    static ssize_t (*next)(int, void *, size_t);
    if (!next) next = dlsym(RTLD_NEXT, "read");
    ssize_t count = next(fd, buffer, length);
    struct stat about;
    if (count > 0 && fstat(fd, &about) == 0 && S_ISSOCK(about.st_mode)) delay();
    return count;
}
