// SPDX-License-Identifier: Apache-2.0
// A tiny server of files by HTTP/1.1, with a thread a connection and nothing between it and its
// calls: read, then writev of head and body.
//
// tiny FOLDER PORT|PATH: on 127.0.0.1, or on a Unix socket of that path.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <unistd.h>

#define FILES 8

static struct file {
    char name[64], head[128], *body;
    size_t length;
} files[FILES];
static int folder, count;

static void must(int ok, const char *what) {
    if (ok) return;
    perror(what);
    _exit(1);
}

/* A file of the folder, which is read once; 0 if there is none. */
static struct file *find(const char *name) {
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    struct file *found = 0;
    pthread_mutex_lock(&lock);
    for (int number = 0; number < count && !found; number++)
        if (strcmp(files[number].name, name) == 0) found = &files[number];
    int fd = found || count == FILES || strlen(name) >= sizeof found->name
                 ? -1
                 : openat(folder, name, O_RDONLY);
    if (fd >= 0) {
        struct stat status;
        struct file *file = &files[count];
        must(fstat(fd, &status) == 0, "fstat");
        file->length = status.st_size, file->body = malloc(file->length);
        must(read(fd, file->body, file->length) == status.st_size, "read");
        close(fd);
        strcpy(file->name, name);
        sprintf(file->head, "HTTP/1.1 200 OK\r\nContent-Length: %zu\r\n\r\n", file->length);
        found = file, count++;
    }
    pthread_mutex_unlock(&lock);
    return found;
}

static int answer(int connection, struct file *file) {
    static const char none[] = "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n";
    struct iovec parts[2] = {{(char *)none, sizeof none - 1}, {0, 0}}, *part = parts;
    if (file) {
        parts[0] = (struct iovec){file->head, strlen(file->head)};
        parts[1] = (struct iovec){file->body, file->length};
    }
    while (part < parts + 2) {
        ssize_t sent = writev(connection, part, parts + 2 - part);
        if (sent < 0) return -1;
        for (; part < parts + 2 && (size_t)sent >= part->iov_len; part++) sent -= part->iov_len;
        if (part < parts + 2)
            part->iov_base = (char *)part->iov_base + sent, part->iov_len -= sent;
    }
    return 0;
}

static void *serve(void *argument) {
    int connection = (int)(long)argument;
    char request[4096], *end;
    size_t length = 0;
    for (;;) {
        request[length] = 0;
        if ((end = strstr(request, "\r\n\r\n"))) {
            char name[sizeof request];
            struct file *file = sscanf(request, "GET /%s ", name) == 1 ? find(name) : 0;
            if (answer(connection, file) < 0) break;
            length -= end + 4 - request;
            memmove(request, end + 4, length);
            continue;
        }
        ssize_t got = read(connection, request + length, sizeof request - 1 - length);
        if (got <= 0) break;
        length += got;
    }
    close(connection);
    return 0;
}

int main(int argc, char **argv) {
    must(argc == 3, "tiny FOLDER PORT|PATH");
    folder = open(argv[1], O_RDONLY | O_DIRECTORY);
    must(folder >= 0, argv[1]);
    struct sockaddr_in internet = {.sin_family = AF_INET,
                                   .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
                                   .sin_port = htons(atoi(argv[2]))};
    struct sockaddr_un local = {.sun_family = AF_UNIX};
    snprintf(local.sun_path, sizeof local.sun_path, "%s", argv[2]);
    int is_local = argv[2][0] == '/', enabled = 1;
    struct sockaddr *address = is_local ? (void *)&local : (void *)&internet;
    int listener = socket(address->sa_family, SOCK_STREAM, 0);
    must(bind(listener, address, is_local ? sizeof local : sizeof internet) == 0, "bind");
    must(listen(listener, 64) == 0, "listen");
    for (;;) {
        int connection = accept(listener, 0, 0);
        must(connection >= 0, "accept");
        if (!is_local)
            setsockopt(connection, IPPROTO_TCP, TCP_NODELAY, &enabled, sizeof enabled);
        pthread_t thread;
        must(pthread_create(&thread, 0, serve, (void *)(long)connection) == 0, "pthread_create");
        pthread_detach(thread);
    }
}
