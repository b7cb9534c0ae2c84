// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// TCP between two sockets of this host without TCP's path: what one sends is put into the other's
// queue (IPv4 only, as the bench needs). sockmap.c loads it.
#include <linux/bpf.h>

#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#define AF_INET 2

struct ends {
    __u32 local, remote, local_port, remote_port;
};

struct {
    __uint(type, BPF_MAP_TYPE_SOCKHASH);
    __uint(max_entries, 65536);
    __type(key, struct ends);
    __type(value, __u64);
} sockets SEC(".maps");

/* Messages that found the other socket. */
__u64 redirected;

SEC("sockops")
int remember(struct bpf_sock_ops *socket) {
    if (socket->family != AF_INET || (socket->op != BPF_SOCK_OPS_ACTIVE_ESTABLISHED_CB &&
                                      socket->op != BPF_SOCK_OPS_PASSIVE_ESTABLISHED_CB))
        return 0;
    struct ends ends = {socket->local_ip4, socket->remote_ip4, socket->local_port,
                        bpf_ntohl(socket->remote_port)};
    bpf_sock_hash_update(socket, &sockets, &ends, BPF_ANY);
    return 0;
}

SEC("sk_msg")
int redirect(struct sk_msg_md *message) {
    struct ends other = {message->remote_ip4, message->local_ip4,
                         bpf_ntohl(message->remote_port), message->local_port};
    if (bpf_msg_redirect_hash(message, &sockets, &other, BPF_F_INGRESS) == SK_PASS)
        __sync_fetch_and_add(&redirected, 1);
    return SK_PASS;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
