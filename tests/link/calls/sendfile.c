/* SPDX-License-Identifier: Apache-2.0 */
/* sendfile. */
#include "both_ends.h"

/* ring: sendfile */
static void files_are_sent(void) {
    char text[64] = {0};
    int file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC), other = open("/dev/null", O_WRONLY);
    SAY(write(near, "before", 6));
    SAY(sendfile(near, file, NULL, 4));
    SAY(write(near, "after", 5));
    SAY(recv(far, text, 15, MSG_WAITALL));
    printf("%s %.6s %.3s %.5s\n", __func__, text, text + 7, text + 10);
    off_t end = lseek(file, 0, SEEK_END), at = 1;
    SAY(sendfile(near, file, &at, 3));
    SAY(at);
    SAY(lseek(file, 0, SEEK_CUR) == end);
    SAY(recv(far, text, 3, MSG_WAITALL));
    printf("%s %.3s\n", __func__, text);
    SAY(sendfile(near, file, &at, 0));
    at = end - 5;
    SAY(sendfile(near, file, &at, 100));
    SAY(at == end);
    SAY(sendfile(near, file, &at, 100));
    SAY(recv(far, text, 5, MSG_WAITALL));
    at = -1;
    SAY(sendfile(near, file, &at, 3));
    SAY(sendfile(near, file, (void *)8, 3));
    at = 0;
    SAY(sendfile(near, other, &at, 3));
    SAY(sendfile(near, -1, &at, 3));
    SAY(sendfile(near, far, &at, 3));
    SAY(at);
    close(file), close(other);
}

struct stream {
    long bytes, sum;
};

static void *takes_all(void *of) {
    static unsigned char text[30000];
    struct stream *stream = of;
    for (long got; (got = read(far, text, sizeof text)) > 0; stream->bytes += got)
        for (long place = 0; place < got; place++)
            stream->sum += text[place] * ((stream->bytes + place) % 1009 + 1);
    return NULL;
}

/* More than a ring has room for, with and without waiting for the receiver. */
/* ring: sendfile */
static void large_files_are_sent(int returns) {
    enum { SIZE = 3 << 20 };
    int file = memfd_create("file", MFD_CLOEXEC);
    for (int place = 0; place < SIZE; place += 4) pwrite(file, &place, 4, place);
    if (returns) fcntl(near, F_SETFL, O_NONBLOCK);
    struct stream got = {0};
    struct pollfd place = {near, POLLOUT, 0};
    pthread_t thread;
    off_t at = 0;
    pthread_create(&thread, NULL, takes_all, &got);
    while (at < SIZE)
        if (sendfile(near, file, &at, SIZE - at) < 0) poll(&place, 1, SECONDS * 1000);
    shutdown(near, SHUT_WR);
    pthread_join(thread, NULL);
    SAY(got.bytes);
    SAY(got.sum);
    close(file);
}

int main(void) {
    begin();
    CASE(files_are_sent());
    CASE(large_files_are_sent(0));
    CASE(large_files_are_sent(1));
    end();
}
