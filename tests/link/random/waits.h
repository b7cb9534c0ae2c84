/* SPDX-License-Identifier: Apache-2.0 */
/* poll, select and epoll. */

static int sets[2] = {-1, -1}, members[2][2];

static void polls(void) {
    int fds[2] = {descriptor(0), descriptor(1)};
    struct pollfd places[2] = {{fds[0], POLLIN | POLLOUT | (below(2) ? POLLRDHUP : 0), 0},
                               {fds[1], POLLIN | (below(2) ? POLLOUT : 0), 0}};
    struct timespec none = {0, 0};
    if (!is_settled(0) || !is_settled(1)) return;
    int result = below(2) ? poll(places, 2, 0) : ppoll(places, 2, &none, NULL);
    say("poll", "%d %d = %d %x %x", fds[0], fds[1], result, places[0].revents, places[1].revents);
}

static void selects(void) {
    int fds[2] = {descriptor(0), descriptor(1)};
    fd_set in, out;
    struct timeval time = {0, 0};
    struct timespec none = {0, 0};
    if (!is_settled(0) || !is_settled(1)) return;
    FD_ZERO(&in);
    FD_ZERO(&out);
    FD_SET(fds[0], &in);
    FD_SET(fds[1], &in);
    FD_SET(fds[below(2)], &out);
    int most = (fds[0] > fds[1] ? fds[0] : fds[1]) + 1;
    int result = below(2) ? select(most, &in, &out, NULL, &time)
                          : pselect(most, &in, &out, NULL, &none, NULL);
    say("select", "%d %d = %d %d%d%d%d", fds[0], fds[1], result, !!FD_ISSET(fds[0], &in),
        !!FD_ISSET(fds[1], &in), !!FD_ISSET(fds[0], &out), !!FD_ISSET(fds[1], &out));
}

/* Without edges of EPOLLOUT: when the kernel reports them depends on its buffers. */
static void changes_set(void) {
    static const char *const names[] = {"", "EPOLL_CTL_ADD", "EPOLL_CTL_DEL", "EPOLL_CTL_MOD"};
    static const int all[] = {EPOLL_CTL_ADD, EPOLL_CTL_ADD, EPOLL_CTL_MOD, EPOLL_CTL_MOD, EPOLL_CTL_DEL};
    int edges = below(2), end = below(2), fd = descriptor(end), operation = all[below(5)];
    struct epoll_event event = {(below(4) ? EPOLLIN : 0) | (below(3) || edges ? 0 : EPOLLOUT) |
                                    (below(3) ? 0 : EPOLLRDHUP) | (edges ? EPOLLET : 0),
                                {.u64 = below(1000) * 2 + end}};
    int *member = &members[edges][end];
    /* Two descriptors of a connection in one set take it back to TCP, which reports edges anew. */
    if (operation == EPOLL_CTL_ADD && *member && *member != fd) return;
    int result = epoll_ctl(sets[edges], operation, fd, &event);
    say(names[operation], "set=%d fd=%d events=%x data=%ld = %d %s", edges, fd, event.events,
        (long)event.data.u64, result, error_of(result));
    if (result == 0 && operation != EPOLL_CTL_MOD) *member = operation == EPOLL_CTL_ADD ? fd : 0;
}

static int by_data(const void *left, const void *right) {
    const struct epoll_event *a = left, *b = right;
    return a->data.u64 < b->data.u64 ? -1 : a->data.u64 > b->data.u64;
}

static void waits(void) {
    int edges = below(2);
    struct epoll_event got[16];
    if (!is_settled(0) || !is_settled(1)) return;
    int count = epoll_wait(sets[edges], got, 16, 0);
    qsort(got, count > 0 ? count : 0, sizeof *got, by_data);
    char text[512] = "";
    for (int place = 0, used = 0; place < count; place++)
        used += snprintf(text + used, sizeof text - used, " %ld:%x", (long)got[place].data.u64,
                         got[place].events);
    say(edges ? "epoll_wait_edges" : "epoll_wait", "= %d%s", count, text);
}

static void renews_sets(void) {
    memset(members, 0, sizeof members);
    for (int edges = 0; edges < 2; edges++) {
        if (sets[edges] >= 0) close(sets[edges]);
        sets[edges] = epoll_create1(EPOLL_CLOEXEC);
    }
}

struct sleeper {
    int fd, form;
    _Atomic pid_t thread;
    long result;
    int error;
};

static void *sleeps(void *of) {
    struct sleeper *own = of;
    struct pollfd place = {own->fd, POLLIN, 0};
    fd_set in;
    FD_ZERO(&in);
    FD_SET(own->fd, &in);
    int set = epoll_create1(EPOLL_CLOEXEC);
    struct epoll_event event = {EPOLLIN, {.u64 = 9}};
    if (own->form == 3) epoll_ctl(set, EPOLL_CTL_ADD, own->fd, &event);
    own->thread = gettid();
    switch (own->form) {
    case 0: own->result = recv(own->fd, into, 300, 0); break;
    case 1: own->result = poll(&place, 1, SECONDS * 1000); break;
    case 2: own->result = select(own->fd + 1, &in, NULL, NULL, NULL); break;
    default: own->result = epoll_wait(set, &event, 1, SECONDS * 1000);
    }
    close(set);
    return NULL;
}

/* A thread waits until the other end sends. */
static void wakes(void) {
    static const char *const names[] = {"wake_recv", "wake_poll", "wake_select", "wake_epoll_wait"};
    int end = below(2);
    struct sleeper sleeper = {descriptor(end), below(4)};
    long length = 1 + below(300);
    if (below(4) || unread(end) || never_waits(end) || ends[1 - end].has_ended) return;
    pthread_t thread;
    pthread_create(&thread, NULL, sleeps, &sleeper);
    while (!sleeper.thread) usleep(100);
    until_waits(sleeper.thread);
    fill(1 - end, out, length);
    long result = send(ends[1 - end].fds[0], out, length, 0);
    ends[1 - end].sent += result > 0 ? result : 0;
    pthread_join(thread, NULL);
    if (sleeper.form == 0 && sleeper.result > 0) {
        say(names[0], "= %ld%s", sleeper.result, verdict(end, into, sleeper.result));
        ends[end].read += sleeper.result;
    } else {
        say(names[sleeper.form], "= %ld", sleeper.result);
    }
    settle(end);
}
