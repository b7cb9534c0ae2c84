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

SEC("iter/bpf_sk_storage_map")
int drain(struct bpf_iter__bpf_sk_storage_map *ctx)
{
	struct sock *sk = ctx->sk;
	struct connection *connection = ctx->value;
	struct edge_counts *counts;
	struct tcp_sock *tp;
	struct reading now;
	u32 zero = 0;
	u64 *open;

	if (!sk || !connection)
		return 0;
	tp = bpf_skc_to_tcp_sock(sk);
	if (!tp)
		return 0;
	open_unseen(connection, sk, tp);
	open = bpf_map_lookup_elem(&open_connections, &zero);
	if (open && is_open(connection))
		(*open)++;
	if (connection->state != OPEN)
		return 0;
	read_socket(tp, sk, &now);
	if (now.bytes_sent == connection->counted.bytes_sent &&
	    now.bytes_received == connection->counted.bytes_received &&
	    now.retransmits == connection->counted.retransmits)
		return 0;
	if (!hold(connection, OPEN))
		return 0;
	counts = counts_of_connection(connection);
	if (counts) {
		count_reading(counts, connection, &now);
		count_rtt(counts, tp);
	}
	release(connection, tp);
	return 0;
}

SEC("iter/bpf_sk_storage_map")
int count_open(struct bpf_iter__bpf_sk_storage_map *ctx)
{
	struct connection *connection = ctx->value;
	struct edge_key key = {};
	u64 one = 1, *count;

	if (!ctx->sk || !connection || !is_open(connection))
		return 0;
	if (!connection->folded) {
		key = connection->key;
		key.client_port = 0;
	}
	count = bpf_map_lookup_elem(&open_by_edge, &key);
	if (count)
		(*count)++;
	else
		bpf_map_update_elem(&open_by_edge, &key, &one, BPF_NOEXIST);
	return 0;
}

#endif
