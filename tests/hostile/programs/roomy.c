/* SPDX-License-Identifier: Apache-2.0 */
/* roomy CONNECTIONS: limits its address space to 80 MiB more than it has, then opens both ends of
 * CONNECTIONS connections, exchanges messages on each, and takes 64 MiB. Exits with 3 if it does not
 * get them. */
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#define MIB (1L << 20)

static int connects(int ends[2]) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t length = sizeof address;
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    ends[0] = socket(AF_INET, SOCK_STREAM, 0);
    if (bind(listener, (struct sockaddr *)&address, length) || listen(listener, 1) ||
        getsockname(listener, (struct sockaddr *)&address, &length) ||
        connect(ends[0], (struct sockaddr *)&address, length))
        return 0;
    ends[1] = accept(listener, NULL, NULL);
    return ends[1] >= 0 && !close(listener);
}

static int talks(const int ends[2]) {
    char bytes[8];
    for (int number = 0; number < 8; number++) {
        int from = ends[number % 2], to = ends[1 - number % 2];
        if (write(from, "question", 8) != 8 || recv(to, bytes, 8, MSG_WAITALL) != 8)
            return 0;
    }
    return 1;
}

int main(int argc, char **argv) {
    long pages = 0;
    FILE *statm = fopen("/proc/self/statm", "r");
    if (argc != 2 || !statm || fscanf(statm, "%ld", &pages) != 1)
        return 2;
    long used = pages * sysconf(_SC_PAGESIZE);
    struct rlimit limit = {used + 80 * MIB, RLIM_INFINITY};
    if (setrlimit(RLIMIT_AS, &limit))
        return 2;
    for (int number = atoi(argv[1]); number > 0; number--) {
        int ends[2];
        if (!connects(ends) || !talks(ends))
            return 4;
    }
    void *taken = mmap(NULL, 64 * MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return taken == MAP_FAILED ? 3 : 0;
}
