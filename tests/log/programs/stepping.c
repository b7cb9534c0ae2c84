/* SPDX-License-Identifier: Apache-2.0 */
/* stepping [FILE]: logs, on the channel "steps" with the handler id, for each line of stdin so many
 * of the numbers 0, 1, 2 ... as it says, and then prints the next one. The line 0 closes every
 * descriptor but the usual ones, and opens FILE under their numbers. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <tare_log.h>
#include <unistd.h>

enum { HIGHEST = 1000 };

int main(int argc, char **argv) {
    struct tare_log_options options = {.handler = TARE_LOG_ID};
    tare_log_channel steps = tare_log_open_with("steps", &options);
    char line[32];
    for (int64_t next = 0; fgets(line, sizeof line, stdin);) {
        long count = atol(line);
        if (count == 0 && argc > 1) {
            close_range(3, ~0u, 0);
            int own = open(argv[1], O_RDWR | O_CREAT, 0600);
            for (int other = own + 1; other < HIGHEST; other++)
                dup2(own, other);
        }
        for (; count > 0; count--) {
            errno = ENOANO;
            tare_log(steps, next++);
            if (errno != ENOANO)
                return 1;
        }
        printf("%ld\n", (long)next);
        fflush(stdout);
    }
}
