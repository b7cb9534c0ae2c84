/* SPDX-License-Identifier: Apache-2.0 */
/* Other programs that are started while a connection is open: those that have it and those that do not.
 * The bytes are right in both programs, and in this one afterwards. */
#include "both_ends.h"
#include <spawn.h>

extern char **environ;
enum { CHILDS = 9 }; /* the descriptor that the other program has */

/* Reads a line, and sends it back with its own words. */
#define ECHO "read -r line <&9; printf 'of the child: %s' \"$line\" >&9"

static int starts(const char *way, char *command) {
    char *words[] = {"sh", "-c", command, NULL};
    int status = -1;
    pid_t child;
    if (!strcmp(way, "system")) return system(command);
    if (!strcmp(way, "popen")) return pclose(popen(command, "r"));
    if (!strcmp(way, "posix_spawn")) {
        if (posix_spawn(&child, "/bin/sh", NULL, NULL, words, environ)) exit(2);
    } else {
        child = vfork();
        if (child == 0) {
            execv("/bin/sh", words);
            _exit(9);
        }
    }
    waitpid(child, &status, 0);
    return status;
}

static void exchanges(int fd) {
    char text[16] = {0};
    for (int round = 0; round < 4; round++) {
        SAY(write(near, "question", 8));
        SAY(recv(fd, text, 8, MSG_WAITALL));
        SAY(write(fd, "answer", 6));
        SAY(recv(near, text, 6, MSG_WAITALL));
        printf("%s %s\n", __func__, text);
    }
}

/* The other program does not have the connection, which has unread bytes. */
/* ring: vfork system popen */
/* for good: posix_spawn */
static void starts_without_the_connection(const char *way) {
    char text[8] = {0};
    SAY(write(near, "unread", 6));
    SAY(starts(way, "exit 3"));
    SAY(recv(far, text, 6, MSG_WAITALL));
    printf("%s %s\n", __func__, text);
    exchanges(far);
}

/* The other program reads what was unread, and writes. */
/* ring: dup2 shutdown */
static void starts_with_the_connection(const char *way) {
    char text[64] = {0};
    SAY(dup2(far, CHILDS));
    SAY(write(near, "unread\nbehind", 13));
    SAY(starts(way, ECHO));
    SAY(recv(near, text, 20, MSG_WAITALL));
    printf("%s %s\n", __func__, text);
    SAY(recv(far, text, 6, MSG_WAITALL));
    printf("%s %.6s\n", __func__, text);
    exchanges(far);
    SAY(close(CHILDS));
    SAY(shutdown(near, SHUT_WR));
    SAY(read(far, text, 8));
}

int main(void) {
    begin();
    CASE(starts_without_the_connection("vfork"));
    CASE(starts_without_the_connection("posix_spawn"));
    CASE(starts_without_the_connection("system"));
    CASE(starts_without_the_connection("popen"));
    CASE(starts_with_the_connection("vfork"));
    CASE(starts_with_the_connection("posix_spawn"));
    CASE(starts_with_the_connection("system"));
    CASE(starts_with_the_connection("popen"));
    end();
}
