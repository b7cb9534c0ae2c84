/* SPDX-License-Identifier: Apache-2.0 */
/* Seccomp filters like those of servers: the calls that they need while they serve are allowed,
 * any other ends the process. */
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define MOST 40

struct profile {
    const char *name;
    int allowed[MOST]; /* ends with 0, which is read: allowed everywhere */
};

/* Workers with an event loop, as nginx; daemons of datagrams, as chrony; children that see the
 * network before a user is known, as OpenSSH. */
static const struct profile profiles[] = {
    {"events",
     {SYS_write, SYS_readv, SYS_writev, SYS_recvfrom, SYS_sendto, SYS_sendmsg, SYS_sendfile,
      SYS_epoll_wait, SYS_epoll_pwait, SYS_epoll_ctl, SYS_accept4, SYS_getsockopt, SYS_setsockopt,
      SYS_close, SYS_exit_group}},
    {"datagrams",
     {SYS_write, SYS_recvmsg, SYS_recvmmsg, SYS_recvfrom, SYS_sendmsg, SYS_sendto, SYS_select,
      SYS_pselect6, SYS_clock_gettime, SYS_adjtimex, SYS_close, SYS_exit_group}},
    {"untrusted",
     {SYS_write, SYS_poll, SYS_ppoll, SYS_brk, SYS_munmap, SYS_shutdown, SYS_close,
      SYS_clock_gettime, SYS_getrandom, SYS_exit_group}},
};

static int install(const struct profile *profile, const char *how) {
    struct sock_filter code[2 * MOST + 4] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
    };
    unsigned short length = 1;
    int place = -1;
    do {
        unsigned number = place < 0 ? SYS_read : profile->allowed[place];
        code[length++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1);
        code[length++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    } while (profile->allowed[++place]);
    code[length++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
    struct sock_fprog filter = {length, code};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
        return -1;
    if (!strcmp(how, "prctl") || !strcmp(how, "early"))
        return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter, 0, 0);
    if (!strcmp(how, "seccomp"))
        return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &filter);
    return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &filter);
}

/* Strict mode kills for exit_group. */
static long last_call = SYS_exit_group;

/* Any system call that libc does not make ends the process. */
static int dispatch(void) {
    static char selector;
    unsigned long from = 0, to = 0;
    char line[512];
    FILE *maps = fopen("/proc/self/maps", "r");
    while (maps && fgets(line, sizeof line, maps))
        if (strstr(line, "r-xp") && strstr(line, "libc.so.6"))
            sscanf(line, "%lx-%lx", &from, &to);
    if (!to || fclose(maps))
        return -1;
    selector = SYSCALL_DISPATCH_FILTER_BLOCK;
    return prctl(PR_SET_SYSCALL_USER_DISPATCH, PR_SYS_DISPATCH_ON, from, to - from, &selector);
}

/* Restricts the process: "none", "strict", the name of a profile, "counter" (the tick counter is
 * forbidden), "both" (counter and strict) or "dispatch"; by "prctl", "seccomp", or "threads", which is seccomp
 * for all threads. */
static void restrict_to(const char *name, const char *how) {
    int done = -1;
    if (!strcmp(name, "none"))
        return;
    if (!strcmp(name, "counter") || !strcmp(name, "both"))
        done = prctl(PR_SET_TSC, PR_TSC_SIGSEGV, 0, 0, 0);
    if (!strcmp(name, "strict") || !strcmp(name, "both")) {
        done = prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT, 0, 0, 0);
        last_call = SYS_exit;
    }
    if (!strcmp(name, "dispatch"))
        done = dispatch();
    for (size_t number = 0; number < sizeof profiles / sizeof *profiles; number++)
        if (!strcmp(name, profiles[number].name))
            done = install(&profiles[number], how);
    if (done)
        abort();
}

static void leave(int code) {
    syscall(last_call, code);
}
