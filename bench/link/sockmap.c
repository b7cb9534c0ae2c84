// SPDX-License-Identifier: Apache-2.0
// sockmap OBJECT FILE COMMAND...: runs a command whose TCP connections to each other use sockmap
// redirect (OBJECT is sockmap.bpf.c, compiled), and writes into FILE how many messages did.
#define _GNU_SOURCE
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static void must(int ok, const char *what) {
    if (ok) return;
    fprintf(stderr, "sockmap: %s: %s\n", what, strerror(errno));
    exit(1);
}

int main(int count, char **words) {
    must(count > 3, "sockmap OBJECT FILE COMMAND...");
    struct bpf_object *object = bpf_object__open(words[1]);
    must(object && bpf_object__load(object) == 0, words[1]);
    int sockets = bpf_object__find_map_fd_by_name(object, "sockets");
    struct bpf_program *remember = bpf_object__find_program_by_name(object, "remember");
    struct bpf_program *redirect = bpf_object__find_program_by_name(object, "redirect");

    /* A mount of its own: the machine's may be elsewhere, or read-only. */
    char folder[] = "/tmp/sockmap.XXXXXX", group[sizeof folder + 24];
    must(mkdtemp(folder) && unshare(CLONE_NEWNS) == 0 &&
             mount(0, "/", 0, MS_REC | MS_PRIVATE, 0) == 0 &&
             mount("cgroup2", folder, "cgroup2", 0, 0) == 0,
         "cgroup2");
    snprintf(group, sizeof group, "%s/sockmap-%d", folder, getpid());
    must(mkdir(group, 0755) == 0, group);
    int fd = open(group, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    must(bpf_prog_attach(bpf_program__fd(redirect), sockets, BPF_SK_MSG_VERDICT, 0) == 0 &&
             bpf_prog_attach(bpf_program__fd(remember), fd, BPF_CGROUP_SOCK_OPS, 0) == 0,
         "bpf_prog_attach");

    pid_t child = fork();
    must(child >= 0, "fork");
    if (child == 0) {
        int procs = openat(fd, "cgroup.procs", O_WRONLY | O_CLOEXEC);
        must(procs >= 0 && write(procs, "0", 1) == 1, "cgroup.procs");
        execvp(words[3], words + 3);
        must(0, words[3]);
    }
    int status;
    must(waitpid(child, &status, 0) == child, "waitpid");

    uint32_t zero = 0;
    uint64_t redirected = 0;
    int data = bpf_object__find_map_fd_by_name(object, ".bss");
    must(bpf_map_lookup_elem(data, &zero, &redirected) == 0, "redirected");
    FILE *file = fopen(words[2], "w");
    must(file && fprintf(file, "%llu\n", (unsigned long long)redirected) > 0 && fclose(file) == 0,
         words[2]);
    rmdir(group);
    umount2(folder, MNT_DETACH);
    rmdir(folder);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}
