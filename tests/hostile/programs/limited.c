/* SPDX-License-Identifier: Apache-2.0 */
/* limited HOW THREADS COUNT: an event in the main thread and in each of THREADS others, then a limit
 * that leaves the program 64 MiB, and SPARE MiB to spare, beside what it would use without a library.
 * It takes the 64 MiB and logs COUNT more. Or it locks all of its memory, and may lock SPARE MiB more
 * than it would use; where no such limit can be set, any number.
 * Compiled with HOOKED, an event is a keyword that it reads from a socket.
 * Exits with 3 if it did not get its memory, or has more than SPARE MiB of segments; with 4 if it may not lock memory. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/capability.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>
#ifndef HOOKED
#include <tare_log.h>
static tare_log_channel numbers;
#endif

static const long MIB = 1 << 20;
static int done[2], never[2];

static void event(long number) {
#ifdef HOOKED
    int pair[2];
    char text[8];
    (void)number;
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair))
        exit(2);
    write(pair[1], "needle", 6);
    read(pair[0], text, sizeof text);
    close(pair[0]);
    close(pair[1]);
#else
    tare_log(numbers, number);
#endif
}

static void *once(void *unused) {
    char byte;
    event(0);
    write(done[1], "x", 1);
    read(never[0], &byte, 1);
    return unused;
}

/* Bytes of address space that segments of libraries take. */
static long of_segments(void) {
    long segments = 0;
    unsigned long from, to;
    char line[512];
    FILE *maps = fopen("/proc/self/maps", "r");
    if (!maps)
        exit(2);
    while (fgets(line, sizeof line, maps))
        if (strstr(line, "/memfd:tare-") && sscanf(line, "%lx-%lx", &from, &to) == 2)
            segments += to - from;
    fclose(maps);
    return segments;
}

/* Bytes of address space that the rest of this process takes. */
static long used(void) {
    long pages = 0;
    FILE *statm = fopen("/proc/self/statm", "r");
    if (!statm || fscanf(statm, "%ld", &pages) != 1)
        exit(2);
    fclose(statm);
    return pages * sysconf(_SC_PAGESIZE) - of_segments();
}

/* Takes the right to lock any number of bytes away. */
static int lose_right(void) {
    struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
    struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3];
    if (syscall(SYS_capget, &header, data))
        return 1;
    data[0].effective &= ~(1u << CAP_IPC_LOCK);
    return syscall(SYS_capset, &header, data) != 0;
}

static int limit(const char *how) {
    struct rlimit limit = {used() + (64 + SPARE) * MIB, RLIM_INFINITY};
    struct rlimit locked = {used() + SPARE * MIB, used() + SPARE * MIB};
    if (!strcmp(how, "before"))
        return 0;
    if (!strcmp(how, "setrlimit"))
        return setrlimit(RLIMIT_AS, &limit);
    if (!strcmp(how, "prlimit"))
        return prlimit(0, RLIMIT_AS, &limit, NULL);
    if (!strcmp(how, "syscall"))
        return syscall(SYS_prlimit64, getpid(), RLIMIT_AS, &limit, NULL);
    int limited = !setrlimit(RLIMIT_MEMLOCK, &locked) && !lose_right();
    if (mlockall(MCL_CURRENT | MCL_FUTURE))
        return limited ? 3 : 4;
    return of_segments() > SPARE * MIB ? 3 : 0;
}

int main(int argc, char **argv) {
    if (argc != 4 || pipe(done) || pipe(never))
        return 2;
    int threads = atoi(argv[2]), count = atoi(argv[3]);
    pthread_attr_t small;
    pthread_t thread;
    char byte;
#ifndef HOOKED
    numbers = tare_log_open("numbers");
#endif
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 1 << 16);
    event(0);
    for (int number = 0; number < threads; number++)
        if (pthread_create(&thread, &small, once, NULL))
            return 2;
    for (int number = 0; number < threads; number++)
        read(done[0], &byte, 1);
    int failed = limit(argv[1]);
    if (failed)
        _exit(failed > 0 ? failed : 2);
    if (strcmp(argv[1], "mlockall")) {
        void *taken = mmap(NULL, 64 * MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (taken == MAP_FAILED)
            _exit(3);
    }
    for (int number = 1; number <= count; number++)
        event(number);
    _exit(0);
}
