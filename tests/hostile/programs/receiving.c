/* SPDX-License-Identifier: Apache-2.0 */
/* receiving HOW: receives into arrays or memory that something else takes away meanwhile, and prints
 * the results of its calls.
 * readv-over, recvmsg-over: the bytes that come overwrite the array of buffers.
 * readv, recvmsg, recvmmsg: another thread unmaps the array of buffers while the call waits.
 * sendmsg: another thread unmaps the message while the call waits.
 * locked, truncated: after a first part has come, the memory that has it is protected, or its file
 * truncated. */
#define _GNU_SOURCE
#include "waiting.h"
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

enum { PAGE = 4096, LARGE = 4 << 20 };

static const char *how;
static int sockets[2], file;
static struct iovec whole;
static char *page, letters[2 * PAGE], large[LARGE];
static long main_thread;

static int is(const char *name) { return strcmp(how, name) == 0; }

static void *take_away(void *unused) {
    until_it_waits(getpid(), main_thread);
    if (is("locked") || is("truncated")) {
        write(sockets[0], letters, PAGE);
        for (int left = 1; left > 0; sched_yield())
            ioctl(sockets[1], FIONREAD, &left);
        until_it_waits(getpid(), main_thread);
        if (is("locked")) {
            mprotect(page, PAGE, PROT_NONE);
            write(sockets[0], letters, PAGE);
        } else {
            ftruncate(file, 0);
            shutdown(sockets[0], SHUT_WR);
        }
        return unused;
    }
    munmap(page, PAGE);
    if (is("sendmsg")) {
        static char room[LARGE];
        for (ssize_t got = 0, more; got < LARGE && (more = read(sockets[0], room, LARGE)) > 0;)
            got += more;
    } else
        write(sockets[0], "a needle", 8);
    return unused;
}

int main(int argc, char **argv) {
    char buffer[64];
    pthread_t thread;
    if (argc != 2 || socketpair(AF_UNIX, SOCK_STREAM, 0, sockets))
        return 2;
    how = argv[1];
    main_thread = syscall(SYS_gettid);
    whole = (struct iovec){large, LARGE};
    memset(letters, 'A', sizeof letters);
    if (is("truncated")) {
        file = memfd_create("file", 0);
        ftruncate(file, 2 * PAGE);
        page = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    } else
        page = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    struct iovec *vector = (struct iovec *)page;
    struct msghdr on_stack = {.msg_iov = vector, .msg_iovlen = 1};
    struct mmsghdr several = {.msg_hdr = on_stack};
    if (strstr(how, "-over")) {
        *vector = (struct iovec){page, PAGE};
        write(sockets[0], letters, 64);
        ssize_t got = is("readv-over") ? readv(sockets[1], vector, 1) : recvmsg(sockets[1], &on_stack, 0);
        printf("%zd %c\n", got, page[20]);
        return 0;
    }
    *vector = (struct iovec){buffer, sizeof buffer};
    if (is("sendmsg"))
        *(struct msghdr *)page = (struct msghdr){.msg_iov = &whole, .msg_iovlen = 1};
    pthread_create(&thread, NULL, take_away, NULL);
    ssize_t got = is("readv")      ? readv(sockets[1], vector, 1)
                  : is("recvmsg")  ? recvmsg(sockets[1], &on_stack, 0)
                  : is("recvmmsg") ? recvmmsg(sockets[1], &several, 1, MSG_WAITFORONE, NULL)
                  : is("sendmsg")  ? sendmsg(sockets[1], (struct msghdr *)page, 0)
                                   : recv(sockets[1], page, 2 * PAGE, MSG_WAITALL);
    printf("%zd\n", got);
    fflush(stdout);
    pthread_join(thread, NULL);
    return 0;
}
