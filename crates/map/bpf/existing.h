/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Connections and sockets of UDP that are older than the tracer. */
#ifndef TARE_MAP_EXISTING_H
#define TARE_MAP_EXISTING_H

#include "transitions.h"
#include "udp.h"

/* Ports that something listens at, by namespace; the value is the least backlog: at one port, there
 * may be a listener for each address. */
struct listener_key {
	u32 netns;
	u16 port;
	u16 padding;
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 65536);
	__type(key, struct listener_key);
	__type(value, u32);
} listeners SEC(".maps");

/* The side of a connection whose set-up was not seen, and how it is known. */
static __always_inline u8 role_of(struct sock *sk, u32 *confidence)
{
	u16 local = sk->__sk_common.skc_num, peer = __builtin_bswap16(sk->__sk_common.skc_dport);
	struct listener_key key = { .netns = sk->__sk_common.skc_net.net->ns.inum, .port = local };
	u32 *least = bpf_map_lookup_elem(&listeners, &key), backlog = sk->sk_max_ack_backlog;

	/* An accepted socket has the backlog of its listener, a client's has none. */
	*confidence = LISTENER;
	if (backlog || (least && !*least))
		return ROLE_SERVER;
	key.port = peer;
	if (bpf_map_lookup_elem(&listeners, &key))
		return ROLE_CLIENT;
	/* Nothing listens there any more, or the listener has no backlog and is in another namespace.
	 * What has no backlog is a client but for its ports. */
	*confidence = GUESSED;
	return is_ephemeral(sk, peer) && !is_ephemeral(sk, local) ? ROLE_SERVER : ROLE_CLIENT;
}

static __always_inline void found_listener(struct sock *sk, struct task_struct *task)
{
	struct connection *connection;
	u32 *least, backlog = sk->sk_max_ack_backlog;
	struct listener_key key = {
		.netns = sk->__sk_common.skc_net.net->ns.inum,
		.port = sk->__sk_common.skc_num,
	};

	connection = bpf_sk_storage_get(&connections, sk, 0, BPF_SK_STORAGE_GET_F_CREATE);
	if (!connection) {
		lose(UNTRACKED_SOCKETS);
		return;
	}
	if (connection->state == UNKNOWN || connection->pid <= 1) {
		connection->pid = task->tgid;
		connection->owner_listened = true;
		connection->key.role = ROLE_SERVER;
		read_program(task, &connection->key);
	}
	connection->state = LISTENING;
	least = bpf_map_lookup_elem(&listeners, &key);
	if ((!least || *least > backlog) &&
	    bpf_map_update_elem(&listeners, &key, &backlog, BPF_ANY))
		lose(LOST_LISTENERS);
}

static __always_inline void found_connection(struct sock *sk, struct task_struct *task)
{
	struct connection *connection;
	struct edge_counts *counts;
	struct tcp_sock *tp = bpf_skc_to_tcp_sock(sk);
	u32 confidence;

	if (!tp)
		return;
	connection = bpf_sk_storage_get(&connections, sk, 0, BPF_SK_STORAGE_GET_F_CREATE);
	if (!connection) {
		lose(UNTRACKED_SOCKETS);
		return;
	}
	/* It opened after the start, and before its listener was found. */
	if (connection->opened && !connection->key.program) {
		struct edge_key key = {};

		read_program(task, &key);
		if (!streaming && key.program)
			give(connection, tp, &key, task->tgid);
	}
	/* It is known already, perhaps by another descriptor, or has closed. A listener's record is
	 * that of a connection that was accepted before its events were seen. */
	if (!hold(connection, UNKNOWN) && !hold(connection, LISTENING))
		return;
	connection->owner_listened = false;
	connection->key.role = role_of(sk, &confidence);
	connection->pid = task->tgid;
	read_program(task, &connection->key);
	read_addresses(sk, &connection->key);
	read_ports(sk, &connection->key);
	/* Only what is sent from now on counts. */
	read_socket(tp, sk, &connection->counted);
	if (streaming) {
		send_event(&connection->key, FOUND, 0, connection->pid, confidence);
		if (__sync_val_compare_and_swap(&connection->state, HELD, OPEN) != HELD &&
		    streaming == ALL_EVENTS)
			send_event(&connection->key, ENDED, connection->error, connection->pid, 0);
		return;
	}
	counts = counts_of_connection(connection);
	if (counts) {
		counts->pid = connection->pid;
		counts->confidence |= confidence;
		add(counts->found, 1);
	}
	release(connection, tp);
}

/* Its program has called connect(), and waits. */
static __always_inline void found_connecting(struct sock *sk, struct task_struct *task)
{
	struct connection *connection;
	struct tcp_sock *tp = bpf_skc_to_tcp_sock(sk);
	struct edge_key key = {};

	if (!tp)
		return;
	connection = bpf_sk_storage_get(&connections, sk, 0, BPF_SK_STORAGE_GET_F_CREATE);
	if (!connection) {
		lose(UNTRACKED_SOCKETS);
		return;
	}
	if (connection->key.program)
		return;
	read_program(task, &key);
	if (!key.program)
		return;
	/* Where it is established meanwhile, the same is written there. */
	if (connection->state == UNKNOWN) {
		connection->key.role = ROLE_CLIENT;
		read_addresses(sk, &connection->key);
		read_ports(sk, &connection->key);
		__sync_val_compare_and_swap(&connection->state, UNKNOWN, CONNECTING);
	}
	give(connection, tp, &key, task->tgid);
}

static __always_inline struct sock *socket_of(struct file *file)
{
	struct socket *socket = file ? bpf_sock_from_file(file) : NULL;
	struct sock *sk = socket ? socket->sk : NULL;

	if (!sk)
		return NULL;
	if (sk->__sk_common.skc_family != AF_INET && sk->__sk_common.skc_family != AF_INET6)
		return NULL;
	return sk;
}

SEC("iter/task_file")
int find_listeners(struct bpf_iter__task_file *ctx)
{
	struct task_struct *task = ctx->task;
	struct sock *sk = socket_of(ctx->file);

	tracer = bpf_get_current_pid_tgid() >> 32;
	if (task && sk && sk->sk_protocol == IPPROTO_TCP &&
	    sk->__sk_common.skc_state == TCP_LISTEN)
		found_listener(sk, task);
	return 0;
}

SEC("iter/task_file")
int find_connections(struct bpf_iter__task_file *ctx)
{
	struct task_struct *task = ctx->task;
	struct sock *sk = socket_of(ctx->file);

	/* The kernel runs it once more after the last file. */
	if (!task)
		has_found_all = true;
	if (!task || !sk)
		return 0;
	if (sk->sk_protocol == IPPROTO_UDP)
		found_udp_socket(sk);
	if (sk->sk_protocol != IPPROTO_TCP)
		return 0;
	if (is_connected(sk->__sk_common.skc_state))
		found_connection(sk, task);
	else if (sk->__sk_common.skc_state == TCP_SYN_SENT)
		found_connecting(sk, task);
	return 0;
}

#endif
