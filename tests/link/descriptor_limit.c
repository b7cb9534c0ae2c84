/* SPDX-License-Identifier: Apache-2.0 */
/* descriptor_limit WAY TIMES: a thread makes links, whose descriptors have numbers above the limit. Meanwhile the
 * program starts others, by fork, vfork, posix_spawn, system or popen: each has the limit that this
 * program has set. */
#include "calls/both_ends.h"
#include <spawn.h>
#include <stdatomic.h>
#include <sys/resource.h>

enum { LIMIT = 128 };
extern char **environ;
static atomic_int is_over;
static atomic_long rounds;

static void *makes_links(void *unused) {
    struct sockaddr_in address;
    int listener = listen_at(&address);
    char byte = 'f';
    while (!is_over) {
        int client = connect_to(&address), accepted = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
        for (int round = 0; round < 4; round++)
            if (write(client, &byte, 1) != 1 || read(accepted, &byte, 1) != 1 ||
                write(accepted, &byte, 1) != 1 || read(client, &byte, 1) != 1)
                exit(2);
        close(client), close(accepted);
        rounds++;
    }
    return unused;
}

static int check(void) {
    struct rlimit limit;
    return getrlimit(RLIMIT_NOFILE, &limit) || limit.rlim_cur != LIMIT ? 4 : 0;
}

int main(int count, char **words) {
    struct rlimit limit;
    pthread_t thread;
    char command[4096];
    snprintf(command, sizeof command, "'%s' check", words[0]);
    if (count == 2) return check();
    if (count != 3) return 2;
    begin();
    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = LIMIT;
    setrlimit(RLIMIT_NOFILE, &limit);
    connect_both(0); /* has the descriptors below the limit */
    pthread_create(&thread, NULL, makes_links, NULL);
    while (rounds == 0) usleep(1000);
    for (int times = atoi(words[2]); times > 0; times--) {
        char *arguments[] = {words[0], "check", NULL};
        pid_t child;
        int status = -1;
        if (!strcmp(words[1], "system")) {
            status = system(command);
        } else if (!strcmp(words[1], "popen")) {
            status = pclose(popen(command, "r"));
        } else {
            if (!strcmp(words[1], "posix_spawn")) {
                if (posix_spawn(&child, words[0], NULL, NULL, arguments, environ)) exit(2);
            } else {
                child = strcmp(words[1], "fork") ? vfork() : fork();
                if (child == 0) _exit(check());
            }
            waitpid(child, &status, 0);
        }
        if (status) return 3;
    }
    is_over = 1;
    pthread_join(thread, NULL);
    close_both();
}
