/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Messages, when they are sent and received: all of UDP, and TCP where it is streamed. */
#ifndef TARE_MAP_MESSAGES_H
#define TARE_MAP_MESSAGES_H

#include "tcp.h"
#include "udp.h"

/* Messages over TCP are only streamed: otherwise bytes are the kernel's own counters. */
static __always_inline int stream_message(struct sock *sk, int result, bool sent)
{
	struct connection *connection;

	if (result <= 0)
		return 0;
	connection = bpf_sk_storage_get(&connections, sk, 0, 0);
	if (connection && connection->state != UNKNOWN && connection->state != LISTENING)
		send_event(&connection->key, sent ? SENT : RECEIVED, result, connection->pid, 0);
	return 0;
}

SEC("tp_btf/sock_send_length")
int BPF_PROG(udp_sent, struct sock *sk, int result, int flags)
{
	if (streaming == ALL_EVENTS && sk->sk_protocol == IPPROTO_TCP)
		return stream_message(sk, result, true);
	return count_message(sk, result, true);
}

SEC("tp_btf/sock_recv_length")
int BPF_PROG(udp_received, struct sock *sk, int result, int flags)
{
	/* Neither is a message that arrived: it stays, or is one of one's own that comes back. */
	if (flags & (MSG_PEEK | MSG_ERRQUEUE)) {
		forget_peer(sk);
		return 0;
	}
	if (streaming == ALL_EVENTS && sk->sk_protocol == IPPROTO_TCP)
		return stream_message(sk, result, false);
	return count_message(sk, result, false);
}

SEC("cgroup/sendmsg4")
int send_to_ipv4(struct bpf_sock_addr *ctx)
{
	return note_peer(ctx, false);
}

SEC("cgroup/sendmsg6")
int send_to_ipv6(struct bpf_sock_addr *ctx)
{
	return note_peer(ctx, true);
}

SEC("cgroup/recvmsg4")
int receive_from_ipv4(struct bpf_sock_addr *ctx)
{
	return note_peer(ctx, false);
}

SEC("cgroup/recvmsg6")
int receive_from_ipv6(struct bpf_sock_addr *ctx)
{
	return note_peer(ctx, true);
}

#endif
