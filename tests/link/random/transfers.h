/* SPDX-License-Identifier: Apache-2.0 */
/* Calls that send and receive. */

static unsigned char out[LARGEST], into[LARGEST + 64];

/* Cuts a buffer into some parts, the last one of which ends where the buffer does. */
static int cut(struct iovec *parts, unsigned char *text, long length) {
    int count = 1 + below(5);
    for (int part = 0; part < count; part++) {
        long size = part == count - 1 ? length : below(length + 1);
        parts[part] = (struct iovec){text, size};
        text += size, length -= size;
    }
    return count;
}

static int file = -1; /* has the bytes of `out` */

static long send_by(int form, int fd, long length, int flags) {
    struct iovec parts[5];
    int count = cut(parts, out, length);
    struct mmsghdr message = {.msg_hdr = {.msg_iov = parts, .msg_iovlen = count}};
    long skipped = below(100), result;
    off_t offset = skipped;
    errno = 0;
    switch (form) {
    case 0: return write(fd, out, length);
    case 1: return send(fd, out, length, flags);
    case 2: return sendto(fd, out, length, flags, NULL, 0);
    case 3: return writev(fd, parts, count);
    case 4: return sendmsg(fd, &message.msg_hdr, flags);
    case 5: return sendmmsg(fd, &message, 1, flags) == 1 ? (long)message.msg_len : -1;
    case 6: return pwritev2(fd, parts, count, -1, 0);
    }
    if (file < 0) file = memfd_create("file", MFD_CLOEXEC);
    if (ftruncate(file, 0) || pwrite(file, out, length, skipped) != length) exit(2);
    if (form == 7) {
        errno = 0;
        result = sendfile(fd, file, &offset, length);
        if (result >= 0 && offset != skipped + result) say("sendfile", "OFFSET %ld", (long)offset);
    } else {
        lseek(file, skipped, SEEK_SET);
        errno = 0;
        result = sendfile(fd, file, NULL, length);
        int error = errno;
        if (result >= 0 && lseek(file, 0, SEEK_CUR) != skipped + result) say("sendfile", "POSITION");
        errno = error;
    }
    return result;
}

static const char *const SENDS[] = {"write",    "send",     "sendto",   "writev",  "sendmsg",
                                    "sendmmsg", "pwritev2", "sendfile", "sendfile_at_position"};

static void sends(void) {
    int end = below(2), form = below(9), fd = descriptor(end);
    int flags = MSG_NOSIGNAL | (below(3) ? 0 : MSG_DONTWAIT);
    long length = size(room(end));
    fill(end, out, length);
    long result = send_by(form, fd, length, flags);
    say(SENDS[form], "fd=%d length=%ld flags=%x = %ld %s", fd, length, flags, result, error_of(result));
    has_sent(end, result);
}

static long receive_by(int form, int fd, long length, int flags) {
    struct iovec parts[5];
    int count = cut(parts, into, length);
    struct mmsghdr message = {.msg_hdr = {.msg_iov = parts, .msg_iovlen = count}};
    errno = 0;
    switch (form) {
    case 0: return read(fd, into, length);
    case 1: return recv(fd, into, length, flags);
    case 2: return recvfrom(fd, into, length, flags, NULL, NULL);
    case 3: return readv(fd, parts, count);
    case 4: return recvmsg(fd, &message.msg_hdr, flags);
    case 5: return recvmmsg(fd, &message, 1, flags, NULL) == 1 ? (long)message.msg_len : -1;
    default: return preadv2(fd, parts, count, -1, 0);
    }
}

static const char *const RECEIVES[] = {"read",    "recv",     "recvfrom", "readv",
                                       "recvmsg", "recvmmsg", "preadv2"};

static void receives(void) {
    static const int all[] = {0,        0,           0,        MSG_PEEK,
                              MSG_TRUNC, MSG_WAITALL, MSG_DONTWAIT, MSG_PEEK | MSG_DONTWAIT,
                              MSG_PEEK | MSG_TRUNC, MSG_WAITALL | MSG_DONTWAIT};
    int end = below(2), form = below(7), fd = descriptor(end), flags = all[below(10)];
    long length = 1 + size(LARGEST - 1);
    if (below(3) == 0) length = unread(end) + below(3) - 1;
    if (length < 1 || length > LARGEST) length = 1;
    if (!is_settled(end)) return;
    int takes_flags = form != 0 && form != 3 && form != 6;
    if (!takes_flags) flags = 0;
    if (!never_waits(end)) flags |= MSG_DONTWAIT, form = takes_flags ? form : 1;
    if (flags & MSG_WAITALL && length > unread(end)) flags |= MSG_DONTWAIT;
    memset(into, 0, length < 64 ? length : 64);
    long result = receive_by(form, fd, length, flags);
    int has_bytes = !(flags & MSG_TRUNC);
    say(RECEIVES[form], "fd=%d length=%ld flags=%x = %ld %s%s", fd, length, flags, result,
        error_of(result), has_bytes && result > 0 ? verdict(end, into, result) : "");
    if (result > 0 && !(flags & MSG_PEEK)) ends[end].read += result;
}

/* Reads some of the bytes, or all of them. */
static void drains(void) {
    int end = below(2);
    if (is_settled(end)) end = 1 - end;
    long length = below(2) ? unread(end) : below(unread(end) + 1);
    say("drain", "end=%d length=%ld", end, take(end, descriptor(end), length));
    settle(end);
}

/* More than all buffers have room for, and then all of it is read. */
static void fills(void) {
    int end = below(2), fd = descriptor(end);
    if (ends[end].has_ended || ends[1 - end].is_deaf || number % 8) return;
    long result;
    do {
        fill(end, out, LARGEST);
        result = send(fd, out, LARGEST, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (result > 0) ends[end].sent += result;
    } while (result > 0);
    say("fill", "fd=%d = %ld %s", fd, result, error_of(result));
    take(1 - end, descriptor(1 - end), unread(1 - end));
    await(end, POLLOUT);
    settle(1 - end);
}

static void asks_for_bytes(void) {
    int end = below(2), fd = descriptor(end), waiting = -1;
    if (!is_settled(end)) return;
    int result = ioctl(fd, FIONREAD, &waiting);
    say("FIONREAD", "fd=%d = %d %d", fd, result, waiting);
}

static void changes_blocking(void) {
    int end = below(2), fd = descriptor(end), on = below(2);
    struct timeval time = {.tv_usec = on ? 1000 : 0};
    ends[end].returns = on;
    if (below(2)) say("F_SETFL", "fd=%d %d = %d", fd, on, fcntl(fd, F_SETFL, on ? O_NONBLOCK : 0));
    else say("FIONBIO", "fd=%d %d = %d", fd, on, ioctl(fd, FIONBIO, &on));
    if (below(2)) return;
    ends[end].is_timed = time.tv_usec > 0;
    say("SO_RCVTIMEO", "fd=%d %d = %d", fd, (int)time.tv_usec,
        setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &time, sizeof time));
}

static void shuts_down(void) {
    int end = below(2), fd = descriptor(end), is_deaf = below(4) == 0;
    if (below(6) || !is_settled(0) || !is_settled(1)) return;
    /* After both, the kernel resets the connection if bytes arrive. */
    if (is_deaf ? ends[end].has_ended : ends[end].is_deaf) return;
    int result = shutdown(fd, is_deaf ? SHUT_RD : SHUT_WR);
    say("shutdown", "fd=%d %d = %d %s", fd, is_deaf, result, error_of(result));
    if (is_deaf) {
        ends[end].is_deaf = 1;
        return;
    }
    ends[end].has_ended = 1;
    await(1 - end, POLLRDHUP);
    usleep(100); /* A set with links asks the kernel at least every 50 us. */
}
