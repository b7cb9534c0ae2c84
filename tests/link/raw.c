/* SPDX-License-Identifier: Apache-2.0 */
/* raw uring: connects both ends with an io_uring that the library did not see.
 * raw setup: the error of io_uring_setup, made by inline system calls.
 * raw read: what an inline read of a linked connection gives; raw write: what becomes of the stream
 * when a program writes to a linked connection by an inline system call. */
#include "calls/both_ends.h"

static long inline_call(long number, long first, long second, long third) {
    long result;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(number), "D"(first), "S"(second), "d"(third)
                     : "rcx", "r11", "memory");
    return result;
}

int main(int count, char **words) {
    char bytes[16] = {0};
    if (count != 2) return 2;
    if (words[1][0] == 's') {
        printf("io_uring_setup: %s\n", name((int)-inline_call(SYS_io_uring_setup, 1, 0, 0)));
        return 0;
    }
    if (words[1][0] == 'u') {
        static unsigned char parameters[120];
        long ring = inline_call(SYS_io_uring_setup, 1, (long)parameters, 0);
        connect_both(0);
        printf("%s\n", ring < 0 ? name((int)-ring) : "io_uring");
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
