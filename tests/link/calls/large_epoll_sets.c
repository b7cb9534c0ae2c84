/* SPDX-License-Identifier: Apache-2.0 */
/* Epoll sets with many descriptors. */
#include "both_ends.h"

enum { MANY = 10 };

static void waits(int set) {
    struct epoll_event got[4];
    long count = epoll_wait(set, got, 4, SECONDS * 1000);
    SAY(count);
    for (int number = 0; number < count; number++) SAY(got[number].events << 8 | got[number].data.u64);
}

/* The connection is added by one descriptor of the set, and waited for by another one. */
/* ring: dup epoll_ctl epoll_wait EPOLLOUT */
static void set_has_copies(int adds, int waits_by) {
    struct epoll_event event = {EPOLLIN | EPOLLOUT, {.u64 = 7}}, got;
    char text[8];
    int sets[MANY] = {epoll_create1(EPOLL_CLOEXEC)};
    for (int copy = 1; copy < MANY; copy++) sets[copy] = dup(sets[copy - 1]);
    SAY(epoll_ctl(sets[adds], EPOLL_CTL_ADD, far, &event));
    SAY(write(near, "ab", 2));
    until_bytes(far, 2);
    waits(sets[waits_by]);
    SAY(read(far, text, 8));
    waits(sets[waits_by]);
    event.events = EPOLLIN;
    SAY(epoll_ctl(sets[waits_by], EPOLL_CTL_MOD, far, &event));
    SAY(write(near, "cd", 2));
    waits(sets[adds]);
    SAY(read(far, text, 8));
    /* One descriptor is left. */
    for (int copy = 0; copy < MANY; copy++)
        if (copy != waits_by) close(sets[copy]);
    SAY(write(near, "ef", 2));
    waits(sets[waits_by]);
    SAY(read(far, text, 8));
    SAY(write(near, "gh", 2));
    until_bytes(far, 2);
    SAY(close(far));
    SAY(epoll_wait(sets[waits_by], &got, 1, 0));
    SAY(close(sets[waits_by]));
}

int main(void) {
    begin();
    for (int other = 1; other < MANY; other += 4) {
        CASE(set_has_copies(0, other));
        CASE(set_has_copies(other, 0));
        CASE(set_has_copies(other, other));
    }
    end();
}
