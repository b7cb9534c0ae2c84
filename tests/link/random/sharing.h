/* SPDX-License-Identifier: Apache-2.0 */
/* Copies of descriptors, and connections that a child, another program or stdio uses. */

static void copies(void) {
    int end = below(2), fd = descriptor(end), way = below(3), copy;
    struct end *own = &ends[end];
    if (own->count == COPIES) return;
    if (way == 0) copy = dup(fd);
    else if (way == 1) copy = fcntl(fd, F_DUPFD_CLOEXEC, 60 + below(20));
    else copy = dup2(fd, 100 + below(20) * 2 + end);
    say(way == 0 ? "dup" : way == 1 ? "F_DUPFD_CLOEXEC" : "dup2", "fd=%d = %d", fd, copy);
    if (way == 2) /* it may have replaced a copy */
        for (int place = 0; place < own->count; place++)
            if (own->fds[place] == copy) return;
    own->fds[own->count++] = copy;
}

static void closes_copy(void) {
    int end = below(2), place = below(ends[end].count);
    struct end *own = &ends[end];
    if (own->count == 1) return;
    int fd = own->fds[place];
    own->fds[place] = own->fds[--own->count];
    int result = close(fd);
    say("close_copy", "fd=%d = %d", fd, result);
}

/* What a child does with its end; both processes then know what it has read and sent. */
static void uses(int end, int fd, long reads, long sends) {
    take(end, fd, reads);
    fill(end, out, sends);
    long result = send(fd, out, sends, MSG_NOSIGNAL);
    say("child", "read=%ld sent=%ld %s", reads, result, error_of(result));
    fflush(stdout);
}

static const char *program;

static void is_used_by_child(int is_exec) {
    int end = below(2), fd = descriptor(end);
    long reads = below(2) ? unread(end) : below(unread(end) + 1), sends = size(room(end) < 2000 ? room(end) : 2000);
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        if (!is_exec) {
            uses(end, fd, reads, sends);
            _exit(0);
        }
        char words[8][24];
        long values[] = {number, connections, end, fd, reads, sends, (long)ends[end].read,
                         (long)ends[end].sent};
        for (int word = 0; word < 8; word++) snprintf(words[word], 24, "%ld", values[word]);
        for (int each = 0; each < 2; each++)
            for (int place = 0; place < ends[each].count; place++)
                fcntl(ends[each].fds[place], F_SETFD, FD_CLOEXEC);
        fcntl(fd, F_SETFD, 0);
        execl(program, program, "child", words[0], words[1], words[2], words[3], words[4], words[5],
              words[6], words[7], NULL);
        _exit(9);
    }
    int status = -1;
    waitpid(child, &status, 0);
    say(is_exec ? "exec" : "fork", "fd=%d = %x", fd, status);
    ends[end].read += reads;
    if (!ends[end].has_ended) has_sent(end, sends);
    settle(end);
}

static void forks(void) {
    if (below(10) == 0) is_used_by_child(0);
}

static void goes_to_stdio(void) {
    int end = below(2);
    long reads = below(unread(end) + 1), sends = size(room(end) < 2000 ? room(end) : 2000);
    if (!is_settled(end)) return;
    FILE *stream = fdopen(dup(descriptor(end)), "r+");
    setvbuf(stream, NULL, _IONBF, 0);
    long got = reads ? (long)fread(into, 1, reads, stream) : 0;
    say("fdopen", "read=%ld = %ld%s", reads, got, verdict(end, into, got));
    ends[end].read += got;
    fill(end, out, sends);
    long sent = (long)fwrite(out, 1, sends, stream);
    say("fdopen", "send=%ld = %ld", sends, sent);
    fclose(stream);
    has_sent(end, sent);
}

static void is_passed(void) {
    int end = below(2), place = below(ends[end].count), pair[2], passed;
    char control[CMSG_SPACE(sizeof(int))] = {0}, byte = 'b';
    struct iovec part = {&byte, 1};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = control,
                             .msg_controllen = sizeof control};
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair)) exit(2);
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(header), &ends[end].fds[place], sizeof(int));
    long sent = sendmsg(pair[0], &message, 0), got = recvmsg(pair[1], &message, 0);
    memcpy(&passed, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof passed);
    say("SCM_RIGHTS", "fd=%d = %ld %ld %d", ends[end].fds[place], sent, got, passed);
    close(ends[end].fds[place]);
    ends[end].fds[place] = passed;
    close(pair[0]), close(pair[1]);
}

/* The stream goes back to TCP for good, which ends what is interesting of a connection. If both ends
 * do that while TCP has no room for unread bytes, a link is reset (docs/internals/link.md). */
static void leaves(void) {
    long way = below(40);
    if (!is_settled(0) || !is_settled(1)) return;
    switch (way) {
    case 0: goes_to_stdio(); break;
    case 1: is_passed(); break;
    case 2: is_used_by_child(1); break;
    }
}
