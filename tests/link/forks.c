/* SPDX-License-Identifier: Apache-2.0 */
/* forks WAY TIMES: a thread makes connections that are linked, another one changes an epoll set. Meanwhile
 * the program forks, by `fork` or `_Fork`; each child closes what it has inherited, and starts a program. */
#include "calls/both_ends.h"
#include <stdatomic.h>

static atomic_int is_over;
static _Atomic long rounds[2];

static void exchange(int client, int accepted) {
    char byte = 'f';
    for (int round = 0; round < 4; round++)
        if (write(client, &byte, 1) != 1 || read(accepted, &byte, 1) != 1 ||
            write(accepted, &byte, 1) != 1 || read(client, &byte, 1) != 1)
            exit(2);
    carry(client, accepted);
}

static void *makes_links(void *unused) {
    struct sockaddr_in address;
    int listener = listen_at(&address);
    while (!is_over) {
        int client = connect_to(&address), accepted = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
        exchange(client, accepted);
        close(client), close(accepted);
        rounds[0]++;
    }
    return unused;
}

static void *changes_a_set(void *unused) {
    int set = epoll_create1(EPOLL_CLOEXEC);
    struct epoll_event in = {EPOLLIN}, both = {EPOLLIN | EPOLLOUT}, got;
    epoll_ctl(set, EPOLL_CTL_ADD, far, &in);
    while (!is_over) {
        if (rounds[1]++ % 64 == 0) epoll_wait(set, &got, 1, 0);
        epoll_ctl(set, EPOLL_CTL_MOD, far, rounds[1] % 2 ? &both : &in);
    }
    return unused;
}

int main(int count, char **words) {
    pthread_t threads[2];
    if (count != 3) return 2;
    pid_t (*forks)(void) = strcmp(words[1], "fork") ? _Fork : fork;
    begin();
    connect_both(0);
    pthread_create(&threads[0], NULL, makes_links, NULL);
    pthread_create(&threads[1], NULL, changes_a_set, NULL);
    for (int times = atoi(words[2]); times > 0; times--) {
        long before[] = {rounds[0], rounds[1]};
        /* The last child has ended, so the threads use the links as if there were none. At most one
         * connection per fork is linked in its moment, and stays TCP. */
        while (rounds[0] < before[0] + 50 || rounds[1] < before[1] + 1000) usleep(1000);
        pid_t child = forks();
        if (child == 0) {
            alarm(SECONDS);
            for (int fd = 3; fd < 64; fd++) close(fd);
            execlp("true", "true", NULL);
            _exit(9);
        }
        int status = -1;
        waitpid(child, &status, 0);
        if (status) return 3;
    }
    is_over = 1;
    pthread_join(threads[0], NULL), pthread_join(threads[1], NULL);
}
