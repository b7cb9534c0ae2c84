/* SPDX-License-Identifier: Apache-2.0 */
/* echoing: its first thread exits; another one prints "ready", and sends itself each line that it
   reads, and prints it. */
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

static pthread_t first;

static void *echo(void *unused) {
    char line[64], back[64];
    int ends[2];
    pthread_join(first, NULL);
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends))
        return unused;
    puts("ready");
    fflush(stdout);
    while (fgets(line, sizeof line, stdin)) {
        send(ends[0], line, strlen(line), 0);
        ssize_t length = recv(ends[1], back, sizeof back, 0);
        fwrite(back, 1, length > 0 ? length : 0, stdout);
        fflush(stdout);
    }
    return unused;
}

int main(void) {
    pthread_t other;
    first = pthread_self();
    if (pthread_create(&other, NULL, echo, NULL))
        return 2;
    pthread_exit(NULL);
}
