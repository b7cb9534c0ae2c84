/* SPDX-License-Identifier: Apache-2.0 */
/* stack HANDLER POLICY KIND [COLLECTOR [fork]]: logs in a signal handler on a stack of its own, and prints
 * how many bytes of it the calls take. With `fork`, these are the first calls of a child.
 *
 * With COLLECTOR, the ring gets full: this process is stopped until a call waits; then the program
 * prints 1, else 0. COLLECTOR 0 is none: once the channel is open, the program listens at TARE_LOG
 * and never answers. It prints 1 if a call has connected, else 0. */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <tare_log.h>
#include <unistd.h>

#define SIZE (128 << 10)
#define PAINT 0xa5
/* These fill a ring of 64 KiB; and a handler logs more than its first event. */
#define NUMBERS 10000
#define PAYLOADS 50
#define FEW 10

static unsigned char stack[SIZE], payload[4096];
static unsigned char *top;
static tare_log_channel channel;
static int kind, calls;
static atomic_int thread_id, has_ended;

static __attribute__((noinline)) void log_it(void) {
    switch (kind) {
    case 0:
        tare_log(channel, 7);
        break;
    case 1:
        tare_log(channel, INT64_MAX);
        break;
    default:
        tare_log_bytes(channel, payload, sizeof payload);
    }
}

static void handle(int signal) {
    top = __builtin_frame_address(0);
    for (int call = 0; call < calls; call++)
        log_it();
    (void)signal;
}

static void *measure(void *unused) {
    stack_t own = {.ss_sp = stack, .ss_size = sizeof stack};
    sigaltstack(&own, NULL);
    memset(stack, PAINT, sizeof stack);
    thread_id = gettid();
    raise(SIGUSR1);
    has_ended = 1;
    return unused;
}

static struct tare_log_options options_of(int handler, int policy) {
    struct tare_log_options options = {.handler = handler, .policy = policy};
    switch (handler) {
    case TARE_LOG_DOWNSAMPLE:
    case TARE_LOG_MEDIAN:
        options.parameters = tare_log_every(1);
        break;
    case TARE_LOG_X_OF_Y:
        options.parameters = tare_log_x_of_y(1, 1);
        break;
    case TARE_LOG_PERIODIC_COUNTER:
    case TARE_LOG_FAST_PERIODIC_COUNTER:
        options.parameters = tare_log_period_ns(1);
        break;
    case TARE_LOG_FOX_START:
    case TARE_LOG_FOX_END:
        options.parameters = tare_log_address(0x7f000001, 9, 1);
    }
    return options;
}

static int is_asleep(void) {
    char path[64], line[256] = "";
    snprintf(path, sizeof path, "/proc/self/task/%d/stat", thread_id);
    FILE *stat = fopen(path, "r");
    if (!stat)
        return 0;
    const char *read = fgets(line, sizeof line, stat);
    fclose(stat);
    const char *state = read ? strrchr(line, ')') : NULL;
    return state && state[2] == 'S';
}

static int listen_at(const char *path) {
    struct sockaddr_un own = {.sun_family = AF_UNIX};
    strncpy(own.sun_path, path, sizeof own.sun_path - 1);
    int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);
    bind(listener, (struct sockaddr *)&own, sizeof own);
    listen(listener, 1);
    return listener;
}

int main(int count, char **words) {
    struct tare_log_options options = options_of(atoi(words[1]), atoi(words[2]));
    kind = atoi(words[3]);
    pid_t collector = count > 4 ? atoi(words[4]) : -1;
    calls = collector < 0 ? FEW : kind < 2 ? NUMBERS : PAYLOADS;
    struct sigaction action = {.sa_handler = handle, .sa_flags = SA_ONSTACK};
    sigaction(SIGUSR1, &action, NULL);
    const char *path = getenv("TARE_LOG");
    if (collector == 0)
        unlink(path);
    channel = tare_log_open_with("stack", &options);
    int listener = collector == 0 ? listen_at(path) : -1;
    if (collector > 0)
        kill(collector, SIGSTOP);
    pid_t child = count > 5 ? fork() : 0;
    if (child) {
        int status;
        waitpid(child, &status, 0);
        return status != 0;
    }
    pthread_t thread;
    pthread_create(&thread, NULL, measure, NULL);
    int has_waited = 0;
    if (collector > 0) {
        while (!has_ended && !has_waited)
            has_waited = thread_id && is_asleep();
        kill(collector, SIGCONT);
    }
    pthread_join(thread, NULL);
    int has_connected = accept(listener, NULL, NULL) >= 0;
    unsigned char *lowest = stack;
    while (*lowest == PAINT)
        lowest++;
    printf("%ld %d\n", (long)(top - lowest), has_waited || has_connected);
}
