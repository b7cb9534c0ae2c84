/* SPDX-License-Identifier: Apache-2.0 */
/* nested THREADS ROUNDS [SPINS [drop|lose]]: each thread handles so many requests, one span within
 * the other: request { parse; work, three deep; answer }, with a text and a level between; SPINS is
 * how long an answer takes. The last request of each thread never ends. With "lose", the parent,
 * which is the collector, is stopped during the second third of a thread's requests. */
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <tare_log.h>
#include <unistd.h>

static struct tare_log_options options = {.policy = TARE_LOG_WAIT};
static tare_log_channel request[2], parse[2], work[2], answer[2], text, level, alone;
static long rounds, spins = 20;
static int loses;

static tare_log_channel opened(const char *name) { return tare_log_open_with(name, &options); }

static void spin(long times) {
    for (volatile long turn = 0; turn < times; turn++)
        ;
}

static void working(long depth) {
    tare_log(work[0], depth);
    spin(10);
    if (depth > 1)
        working(depth - 1);
    tare_log(work[1], depth);
}

static void *handle(void *unused) {
    (void)unused;
    for (long round = 0; round < rounds; round++) {
        if (loses && round == rounds / 3)
            kill(getppid(), SIGSTOP);
        if (loses && round == 2 * rounds / 3)
            kill(getppid(), SIGCONT);
        tare_log(request[0], round);
        tare_log(parse[0], round);
        tare_log_bytes(text, "GET /\n\"quoted\"", 14);
        tare_log(parse[1], -round);
        working(3);
        tare_log(level, round % 7);
        tare_log(answer[0], round);
        spin(spins);
        tare_log(answer[1], round);
        if (round + 1 < rounds)
            tare_log(request[1], round);
    }
    return NULL;
}

int main(int argc, char **argv) {
    int threads = argc > 1 ? atoi(argv[1]) : 1;
    rounds = argc > 2 ? atol(argv[2]) : 1;
    if (argc > 3)
        spins = atol(argv[3]);
    loses = argc > 4 && !strcmp(argv[4], "lose");
    if (loses || (argc > 4 && !strcmp(argv[4], "drop")))
        options.policy = TARE_LOG_DROP;
    request[0] = opened("request>"), request[1] = opened("request<");
    parse[0] = opened("parse  in"), parse[1] = opened("parse  out");
    work[0] = opened("work tin"), work[1] = opened("work tout");
    answer[0] = opened("go"), answer[1] = opened("gone");
    text = opened("text"), level = opened("level"), alone = opened("check in");
    tare_log(alone, 1);
    pthread_t started[64];
    for (int thread = 0; thread < threads && thread < 64; thread++)
        pthread_create(&started[thread], NULL, handle, NULL);
    for (int thread = 0; thread < threads && thread < 64; thread++)
        pthread_join(started[thread], NULL);
}
