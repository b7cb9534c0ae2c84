/* SPDX-License-Identifier: Apache-2.0 */
/* forking: parent and child log on one channel, which the parent has opened; so does a child
 * made by a bare clone, of which the C library does not know. */
#define _GNU_SOURCE
#include <sys/syscall.h>
#include <sys/wait.h>
#include <signal.h>
#include <tare_log.h>
#include <unistd.h>

int main(void) {
    tare_log_channel channel = tare_log_open("family");
    tare_log(channel, 1);
    if (fork() == 0) {
        tare_log(channel, 2);
        _exit(0);
    }
    wait(NULL);
    if (syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0) == 0) {
        tare_log(channel, 3);
        tare_log(tare_log_open("another"), 4);
        _exit(0);
    }
    wait(NULL);
    tare_log(channel, 5);
}
