/* SPDX-License-Identifier: Apache-2.0 */
/* random_calls SEED OPERATIONS: random calls on both ends of connections, and what each returns.
 * Calls whose result depends on time are not made, so two runs print the same lines. */
#include "connection.h"
#include "transfers.h"
#include "waits.h"
#include "sharing.h"

/* The connection ends, in one of the ways that a program can end it. */
static void ends_connection(void) {
    int end = below(2), way = below(4), other = 1 - end;
    struct linger linger = {1, 0};
    if (way != 1) take(end, ends[end].fds[0], unread(end));
    if (!is_settled(other)) take(other, ends[other].fds[0], unread(other));
    settle(other);
    if (way == 2) setsockopt(ends[end].fds[0], SOL_SOCKET, SO_LINGER, &linger, sizeof linger);
    say("end", "way=%d end=%d", way, end);
    close_end(end);
    await(other, POLLRDHUP);
    for (int times = 0; times < 3; times++) {
        long got = recv(ends[other].fds[0], into, LARGEST, MSG_DONTWAIT);
        say("end_recv", "= %ld %s%s", got, error_of(got), got > 0 ? verdict(other, into, got) : "");
        if (got > 0) ends[other].read += got;
    }
    close_end(other);
}

static void (*const OPERATIONS[])(void) = {
    sends,  sends,   sends,    sends,       sends,          receives,         receives,   receives,
    receives, receives, drains, polls,      selects,        changes_set,      changes_set, waits,
    waits,  waits,   waits,    wakes,       asks_for_bytes, changes_blocking, shuts_down, copies,
    copies, closes_copy, closes_copy, forks, leaves, fills,
};

int main(int count, char **words) {
    begin();
    signal(SIGPIPE, SIG_IGN);
    program = "/proc/self/exe";
    if (count == 10) {
        number = atol(words[2]), connections = atoi(words[3]);
        int end = atoi(words[4]);
        ends[end] = (struct end){.fds = {atoi(words[5])}, .count = 1};
        ends[end].read = atol(words[8]), ends[end].sent = atol(words[9]);
        uses(end, atoi(words[5]), atol(words[6]), atol(words[7]));
        return 0;
    }
    if (count != 3) return 2;
    chance = strtoull(words[1], NULL, 10) * 0x9E3779B97F4A7C15ull + 1;
    long most = atol(words[2]), until = 0;
    for (number = 0; number < most; number++) {
        if (number == until) {
            if (number) ends_connection();
            begin_connection(), renews_sets();
            until = number + 20 + below(300);
        }
        OPERATIONS[below(sizeof OPERATIONS / sizeof *OPERATIONS)]();
    }
    ends_connection();
    end();
}
