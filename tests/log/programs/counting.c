/* SPDX-License-Identifier: Apache-2.0 */
/* counting FILE THREADS [wait|drop|overwrite]: every thread logs 1, 2, 3 ... on a channel of its own and
 * writes the number that was logged last to its place in FILE, which is shared memory, until it
 * is killed. */
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <tare_log.h>
#include <unistd.h>

static struct tare_log_options options = {.policy = TARE_LOG_WAIT};
static volatile int64_t *committed;

static void *count(void *number) {
    long place = (long)number;
    char name[32];
    snprintf(name, sizeof name, "thread %ld", place);
    tare_log_channel channel = tare_log_open_with(name, &options);
    for (int64_t next = 1;; next++) {
        tare_log(channel, next);
        committed[16 * place] = next;
    }
    return NULL;
}

int main(int argc, char **argv) {
    if (argc < 3)
        return 2;
    int file = open(argv[1], O_RDWR | O_CREAT, 0600);
    int threads = atoi(argv[2]);
    if (argc > 3 && !strcmp(argv[3], "drop"))
        options.policy = TARE_LOG_DROP;
    if (argc > 3 && !strcmp(argv[3], "overwrite"))
        options.policy = TARE_LOG_OVERWRITE;
    if (file < 0 || ftruncate(file, 4096))
        return 1;
    committed = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (committed == MAP_FAILED)
        return 1;
    pthread_t started;
    for (long number = 1; number < threads; number++)
        pthread_create(&started, NULL, count, (void *)number);
    count((void *)0);
}
