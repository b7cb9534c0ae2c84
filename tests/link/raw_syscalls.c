/* SPDX-License-Identifier: Apache-2.0 */
/* raw_syscalls uring: connects both ends with an io_uring that the library did not see.
 * raw_syscalls uring-late: sends with such a ring on a connection that was linked before.
 * raw_syscalls setup: the error of io_uring_setup, made by inline system calls.
 * raw_syscalls libc: made by `syscall`, and the errors of liburing's functions.
 * raw_syscalls read: what an inline read of a linked connection gives.
 * raw_syscalls write: what becomes of the stream when a program writes to a linked connection by an inline system call. */
#include "calls/both_ends.h"
#include <dlfcn.h>
#include <linux/io_uring.h>

static long inline_call(long number, long first, long second, long third) {
    long result;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(number), "D"(first), "S"(second), "d"(third)
                     : "rcx", "r11", "memory");
    return result;
}

/* Has the ring send, and waits until it has done so. */
static int send_by_ring(int ring, const struct io_uring_params *of, int fd, const char *bytes) {
    int rights = PROT_READ | PROT_WRITE;
    unsigned char *queues = mmap(NULL, 4096, rights, MAP_SHARED, ring, IORING_OFF_SQ_RING);
    struct io_uring_sqe *entry = mmap(NULL, 4096, rights, MAP_SHARED, ring, IORING_OFF_SQES);
    if (queues == MAP_FAILED || entry == MAP_FAILED || !(of->features & IORING_FEAT_SINGLE_MMAP))
        exit(2);
    *entry = (struct io_uring_sqe){.opcode = IORING_OP_SEND, .fd = fd, .addr = (unsigned long)bytes,
                                   .len = strlen(bytes)};
    *(unsigned *)(queues + of->sq_off.array) = 0;
    __atomic_store_n((unsigned *)(queues + of->sq_off.tail), 1, __ATOMIC_RELEASE);
    long done = syscall(SYS_io_uring_enter, ring, 1, 1, IORING_ENTER_GETEVENTS, NULL, 0);
    if (done != 1) exit(2);
    return ((struct io_uring_cqe *)(queues + of->cq_off.cqes))->res;
}

int main(int count, char **words) {
    char bytes[16] = {0};
    if (count != 2) return 2;
    if (words[1][0] == 's') {
        printf("io_uring_setup: %s\n", name((int)-inline_call(SYS_io_uring_setup, 1, 0, 0)));
        return 0;
    }
    if (words[1][0] == 'l') {
        static const char *names[] = {"io_uring_setup", "io_uring_queue_init",
                                      "io_uring_queue_init_params", "io_uring_queue_init_mem"};
        static unsigned char memory[4096];
        for (int place = 0; place < 4; place++) {
            int (*set_up)(unsigned, void *, void *, void *, size_t) = dlsym(RTLD_DEFAULT, names[place]);
            printf("%s: %s\n", names[place], set_up ? name(-set_up(1, memory, memory, NULL, 0)) : "absent");
        }
        printf("syscall: %s\n", syscall(SYS_io_uring_setup, 1, memory) < 0 ? name(errno) : "io_uring");
        return 0;
    }
    if (words[1][0] == 'u') {
        static struct io_uring_params parameters;
        int is_late = !strcmp(words[1], "uring-late");
        if (is_late) connect_both(0);
        long ring = inline_call(SYS_io_uring_setup, 1, (long)&parameters, 0);
        if (!is_late) connect_both(0);
        printf("%s\n", ring < 0 ? name((int)-ring) : "io_uring");
        if (ring < 0 || !is_late) return 0;
        if (write(near, "ring", 4) != 4) return 2;
        printf("sent: %d\n", send_by_ring(ring, &parameters, near, "tcp"));
        printf("read: %ld %s\n", (long)read(far, bytes, sizeof bytes), bytes);
        printf("read: %s\n", read(far, bytes, sizeof bytes) < 0 ? name(errno) : "bytes");
        return 0;
    }
    connect_both(0);
    if (write(near, "ring", 4) != 4) return 2;
    if (words[1][0] == 'r') {
        fcntl(far, F_SETFL, O_NONBLOCK);
        long got = inline_call(SYS_read, far, (long)bytes, sizeof bytes);
        printf("inline read: %s\n", got < 0 ? name((int)-got) : "bytes");
        printf("read: %ld %s\n", (long)read(far, bytes, sizeof bytes), bytes);
    } else {
        printf("inline write: %ld\n", inline_call(SYS_write, near, (long)"tcp", 3));
        printf("read: %ld %s\n", (long)read(far, bytes, sizeof bytes), bytes);
        printf("read: %s\n", read(far, bytes, sizeof bytes) < 0 ? name(errno) : "bytes");
    }
    return 0;
}
