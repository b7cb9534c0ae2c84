/* SPDX-License-Identifier: Apache-2.0 */
/* vforked COUNT: a child of vfork logs the first event, and then two threads COUNT numbers each. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <tare_log.h>
#include <unistd.h>

static tare_log_channel numbers;
static long count;

static void *log_all(void *first) {
    for (long number = 0; number < count; number++)
        tare_log(numbers, (long)first + number);
    return NULL;
}

int main(int argc, char **argv) {
    pthread_t thread;
    if (argc != 2)
        return 2;
    count = atol(argv[1]);
    numbers = tare_log_open("numbers");
    pid_t child = vfork();
    if (!child) {
        tare_log(numbers, -1);
        _exit(0);
    }
    waitpid(child, NULL, 0);
    if (pthread_create(&thread, NULL, log_all, (void *)0))
        return 2;
    log_all((void *)count);
    pthread_join(thread, NULL);
    return 0;
}
