/* SPDX-License-Identifier: Apache-2.0 */
/* clone_vm HOW: while a thread waits for bytes, a process that has its memory limits its own: a child
 * of `clone` with CLONE_VM (clone); or a child that is forked by the handler of a signal, and returns to
 * the call that the signal has interrupted (forked).
 * Prints what each process has received. */
#define _GNU_SOURCE
#include "waiting.h"
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static int sockets[2];
static volatile long reader;
static volatile pid_t child = -1;
static char stack[1 << 16] __attribute__((aligned(16)));

static void limit(void) {
    struct rlimit limit = {64 << 20, RLIM_INFINITY};
    setrlimit(RLIMIT_AS, &limit);
}

static int limited(void *unused) {
    (void)unused;
    limit();
    execl("/bin/true", "true", (char *)NULL);
    _exit(9);
}

static void *receive(void *unused) {
    char room[64];
    (void)unused;
    reader = syscall(SYS_gettid);
    return (void *)read(sockets[1], room, sizeof room);
}

static void fork_here(int signal) {
    (void)signal;
    child = fork();
    if (child == 0)
        limit();
}

/* A helper sends the signal once this process waits. */
static int forked(void) {
    char room[64];
    struct sigaction action = {.sa_handler = fork_here};
    sigaction(SIGUSR1, &action, NULL);
    pid_t own = getpid(), helper = fork();
    if (helper == 0) {
        until_it_waits(own, own);
        kill(own, SIGUSR1);
        _exit(0);
    }
    ssize_t got = read(sockets[1], room, sizeof room);
    if (child == 0) {
        write(sockets[0], "needle", 6);
        got = read(sockets[1], room, sizeof room);
        _exit(got == 6 ? 7 : 8);
    }
    int status = 0;
    waitpid(helper, NULL, 0);
    waitpid(child, &status, 0);
    printf("%zd, child %x\n", got, status);
    return 0;
}

int main(int argc, char **argv) {
    if (argc != 2 || socketpair(AF_UNIX, SOCK_STREAM, 0, sockets))
        return 2;
    if (!strcmp(argv[1], "forked"))
        return forked();
    pthread_t thread;
    pthread_create(&thread, NULL, receive, NULL);
    while (!reader)
        sched_yield();
    until_it_waits(getpid(), reader);
    pid_t other = clone(limited, stack + sizeof stack, CLONE_VM | CLONE_VFORK | SIGCHLD, NULL);
    int status;
    void *got;
    waitpid(other, &status, 0);
    write(sockets[0], "a needle", 8);
    pthread_join(thread, &got);
    printf("%ld, child %x\n", (long)got, status);
    return 0;
}
