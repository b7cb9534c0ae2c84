/* SPDX-License-Identifier: Apache-2.0 */
/* musl PORT: asks a server that sends back what it gets. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

int main(int count, char **words) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    char text[8];
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    if (count != 2) return 2;
    address.sin_port = htons(atoi(words[1]));
    if (connect(fd, (void *)&address, sizeof address)) return 3;
    for (int round = 0; round < 100; round++) {
        if (write(fd, "request", 7) != 7 || recv(fd, text, 7, MSG_WAITALL) != 7) return 4;
        if (memcmp(text, "request", 7)) return 5;
    }
    return puts("done") < 0;
}
