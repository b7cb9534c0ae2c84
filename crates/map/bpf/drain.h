/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The counters of connections that are open. */
#ifndef TARE_MAP_DRAIN_H
#define TARE_MAP_DRAIN_H

#include "transitions.h"

/* Connections that `drain` found open. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, u64);
} open_connections SEC(".maps");

/* What `count_open` found: each connection has a record while its socket exists. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 32768);
	__type(key, struct edge_key);
	__type(value, u64);
} open_by_edge SEC(".maps");

static __always_inline bool is_open(struct connection *connection)
{
	return connection->state == OPEN || connection->state == HELD;
}

static __always_inline void drain_connection(struct connection *connection, struct sock *sk)
{
	struct edge_counts *counts;
	struct tcp_sock *tp = bpf_skc_to_tcp_sock(sk);
	struct reading now;
	u32 zero = 0;
	u64 *open;

	if (!tp)
		return;
	open_unseen(connection, sk, tp);
	/* The kernel's state changes after its event. */
	if (sk->__sk_common.skc_state == TCP_CLOSE)
		close_unseen(connection, sk, tp);
	open = bpf_map_lookup_elem(&open_connections, &zero);
	if (open && is_open(connection))
		(*open)++;
	if (connection->state != OPEN)
		return;
	read_socket(tp, sk, &now);
	if (now.bytes_sent == connection->counted.bytes_sent &&
	    now.bytes_received == connection->counted.bytes_received &&
	    now.retransmits == connection->counted.retransmits)
		return;
	if (!hold(connection, OPEN))
		return;
	counts = counts_of_connection(connection);
	if (counts) {
		count_reading(counts, connection, &now);
		count_rtt(counts, tp);
	}
	release(connection, tp);
}

static __always_inline void count_connection(struct connection *connection)
{
	struct edge_key key = {};
	u64 first_count = 1, *count;

	if (!is_open(connection))
		return;
	if (!connection->folded) {
		key = connection->key;
		key.client_port = 0;
	}
	count = bpf_map_lookup_elem(&open_by_edge, &key);
	if (count)
		(*count)++;
	else if (bpf_map_update_elem(&open_by_edge, &key, &first_count, BPF_NOEXIST))
		lose(LOST_OPEN);
}

/* The value that the kernel passes is the same, but some kernels take no key from it. */
static __always_inline struct connection *record_of(struct sock *sk, void *value)
{
	return sk && value ? bpf_sk_storage_get(&connections, sk, 0, 0) : NULL;
}

SEC("iter/bpf_sk_storage_map")
int drain(struct bpf_iter__bpf_sk_storage_map *ctx)
{
	struct sock *sk = ctx->sk;
	struct connection *connection = record_of(sk, ctx->value);

	if (connection)
		drain_connection(connection, sk);
	return 0;
}

SEC("iter/bpf_sk_storage_map")
int count_open(struct bpf_iter__bpf_sk_storage_map *ctx)
{
	struct connection *connection = record_of(ctx->sk, ctx->value);

	if (connection)
		count_connection(connection);
	return 0;
}

/* The same where the kernel refuses iterators over maps: for the sockets of one namespace. */
static __always_inline struct connection *connection_of(struct bpf_iter__tcp *ctx, struct tcp_sock **tp)
{
	*tp = ctx->sk_common ? bpf_skc_to_tcp_sock(ctx->sk_common) : NULL;
	return *tp ? bpf_sk_storage_get(&connections, *tp, 0, 0) : NULL;
}

SEC("iter/tcp")
int drain_namespace(struct bpf_iter__tcp *ctx)
{
	struct tcp_sock *tp;
	struct connection *connection = connection_of(ctx, &tp);

	if (connection)
		drain_connection(connection, (struct sock *)tp);
	return 0;
}

SEC("iter/tcp")
int count_open_in_namespace(struct bpf_iter__tcp *ctx)
{
	struct tcp_sock *tp;
	struct connection *connection = connection_of(ctx, &tp);

	if (connection)
		count_connection(connection);
	return 0;
}

#endif
