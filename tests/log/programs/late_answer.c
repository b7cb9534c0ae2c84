/* SPDX-License-Identifier: Apache-2.0 */
/* A library for LD_PRELOAD: poll() of a pidfd first creates the file in TARE_TEST_ASKED, and returns
   only when the process has exited. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* gcc takes poll() for a function that only writes to its array. */
int late_poll(struct pollfd *files, nfds_t count, int timeout) __asm__("poll");

int late_poll(struct pollfd *files, nfds_t count, int timeout) {
    char path[64], link[64] = "";
    snprintf(path, sizeof path, "/proc/self/fd/%d", count == 1 ? files->fd : -1);
    if (readlink(path, link, sizeof link - 1) > 0 && strstr(link, "pidfd")) {
        close(open(getenv("TARE_TEST_ASKED"), O_CREAT | O_WRONLY, 0600));
        return ppoll(files, count, NULL, NULL);
    }
    struct timespec limit = {timeout / 1000, timeout % 1000 * 1000000L};
    return ppoll(files, count, timeout < 0 ? NULL : &limit, NULL);
}
