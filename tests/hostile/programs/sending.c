/* SPDX-License-Identifier: Apache-2.0 */
/* sending FUNCTION: sends a mapped file whose end is cut off, before the call and while it is under
 * way, by "write", "writev" or "sendmsg". Prints results that do not depend on the time. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#define PAGE 4096L
#define LARGE (8L << 20)

static const char *function;

static ssize_t transmit(int fd, char *bytes, size_t length) {
    struct iovec parts[2] = {{bytes, length / 2}, {bytes + length / 2, length - length / 2}};
    struct msghdr message = {.msg_iov = parts, .msg_iovlen = 2};
    errno = 0;
    if (!strcmp(function, "write"))
        return write(fd, bytes, length);
    return !strcmp(function, "writev") ? writev(fd, parts, 2) : sendmsg(fd, &message, 0);
}

/* Reads a part, cuts the file off, and reads the rest. */
static void take(int fd, int file) {
    static char room[1 << 16];
    ssize_t got = 1;
    for (long taken = 0; taken < LARGE / 8 && got > 0; taken += got)
        got = read(fd, room, sizeof room);
    if (ftruncate(file, 0))
        _exit(1);
    while (read(fd, room, sizeof room) > 0) {
    }
    _exit(0);
}

int main(int argc, char **argv) {
    int pair[2], file = open("file", O_RDWR | O_CREAT | O_TRUNC, 0600);
    if (argc != 2 || file < 0 || ftruncate(file, LARGE) || socketpair(AF_UNIX, SOCK_STREAM, 0, pair))
        return 2;
    function = argv[1];
    char *bytes = mmap(NULL, LARGE, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    memset(bytes, 'x', LARGE);
    memcpy(bytes, "needle", 6);
    if (!fork()) {
        close(pair[1]);
        take(pair[0], file);
    }
    close(pair[0]);
    ssize_t sent = transmit(pair[1], bytes, LARGE);
    printf("%d\n", sent > 0 && sent < LARGE);
    sent = transmit(pair[1], bytes, PAGE);
    printf("%zd %d\n", sent, errno == EFAULT);
    ftruncate(file, PAGE);
    sent = transmit(pair[1], bytes, PAGE);
    printf("%zd\n", sent);
    return 0;
}
