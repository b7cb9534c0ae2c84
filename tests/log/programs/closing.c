/* SPDX-License-Identifier: Apache-2.0 */
/* closing FILE COUNT: logs 0, 1, 2 ... COUNT - 1 and closes every descriptor but the usual ones,
 * opens FILE, long enough for any ring, under their numbers, and logs as many in a new thread, a
 * child and itself. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <tare_log.h>
#include <unistd.h>

enum { HIGHEST = 1000 };

static const off_t LENGTH = 1 << 30;
static tare_log_channel closing;
static int64_t next;
static long count;

static void *log_more(void *nothing) {
    for (long event = 0; event < count; event++)
        tare_log(closing, next++);
    return nothing;
}

int main(int argc, char **argv) {
    count = argc > 2 ? atol(argv[2]) : 0;
    closing = tare_log_open("closing");
    log_more(NULL);
    close_range(3, ~0u, 0);
    int own = open(argv[1], O_RDWR | O_CREAT, 0600);
    if (ftruncate(own, LENGTH) != 0)
        return 1;
    for (int other = own + 1; other < HIGHEST; other++)
        dup2(own, other);
    pthread_t thread;
    if (pthread_create(&thread, NULL, log_more, NULL) != 0)
        return 1;
    pthread_join(thread, NULL);
    if (fork() == 0) {
        log_more(NULL);
        for (int other = own; other < HIGHEST; other++)
            if (fcntl(other, F_GETFD) < 0)
                _exit(1);
        _exit(0);
    }
    int status;
    wait(&status);
    log_more(NULL);
    return status != 0;
}
