/* SPDX-License-Identifier: Apache-2.0 */
/* together THREADS: so many, 64 at most, each with a channel of its own, log the program's first
 * events at the same moment. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <tare_log.h>

static pthread_barrier_t moment;

static void *log_into_channel(void *number) {
    char name[16];
    snprintf(name, sizeof name, "%d", (int)(long)number);
    pthread_barrier_wait(&moment);
    tare_log(tare_log_open(name), 1);
    return NULL;
}

int main(int argc, char **argv) {
    pthread_t threads[64];
    int count = argc > 1 ? atoi(argv[1]) : 0;
    if (count < 1 || count > 64)
        return 2;
    pthread_barrier_init(&moment, NULL, (unsigned)count);
    for (long n = 0; n < count; n++)
        pthread_create(&threads[n], NULL, log_into_channel, (void *)n);
    for (int n = 0; n < count; n++)
        pthread_join(threads[n], NULL);
}
