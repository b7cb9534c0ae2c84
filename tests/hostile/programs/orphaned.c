/* SPDX-License-Identifier: Apache-2.0 */
/* orphaned: its first thread ends; another one prints "ready", and logs when it has read a line. */
#include <pthread.h>
#include <stdio.h>
#include <tare_log.h>

static pthread_t first;

static void *log_later(void *unused) {
    tare_log_channel numbers = tare_log_open("numbers");
    tare_log(numbers, 1);
    pthread_join(first, NULL);
    puts("ready");
    fflush(stdout);
    getchar();
    tare_log(numbers, 2);
    return unused;
}

int main(void) {
    pthread_t other;
    first = pthread_self();
    if (pthread_create(&other, NULL, log_later, NULL))
        return 2;
    pthread_exit(NULL);
}
