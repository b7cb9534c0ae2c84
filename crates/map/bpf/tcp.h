/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* TCP: one record for each connection, in the storage of its socket. Edges change when a
 * connection opens or closes; bytes are the kernel's own counters, read at the end and by `drain`. */
#ifndef TARE_MAP_TCP_H
#define TARE_MAP_TCP_H

#include "edges.h"

enum state { UNKNOWN, LISTENING, CONNECTING, OPEN, CLOSED };

/* The kernel's counters of a connection. */
struct reading {
	u64 bytes_sent;
	u64 bytes_received;
	u64 packets_sent;
	u64 packets_received;
	u64 retransmits;
};

struct connection {
	struct edge_key key;
	struct reading counted;	/* what the edge has */
	struct reading last;	/* what the socket had when it closed */
	u32 pid;
	u32 state;
	bool folded;
	bool owner_listened;	/* the owner is the one that called listen() */
};

/* A connection that a listener accepts begins with the listener's record. */
struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC | BPF_F_CLONE);
	__type(key, int);
	__type(value, struct connection);
} connections SEC(".maps");

static __always_inline void read_socket(struct tcp_sock *tp, struct sock *sk, struct reading *now)
{
	now->bytes_sent = tp->bytes_sent - tp->bytes_retrans;
	/* The kernel counts the peer's FIN as one byte. */
	now->bytes_received = tp->bytes_received;
	if (now->bytes_received && sk->__sk_common.skc_flags & SOCK_DONE)
		now->bytes_received--;
	now->packets_sent = tp->data_segs_out;
	now->packets_received = tp->data_segs_in;
	now->retransmits = tp->total_retrans;
}

/* Brings an edge's counter from what was counted to `now`. Two CPUs may do this at once with
 * different readings: each adds its difference to what it found, so the sum stays right. */
#define count_up(counts, connection, now, field) do {					\
	if ((connection)->counted.field != (now)->field)				\
		add((counts)->field, (now)->field -					\
		    __sync_lock_test_and_set(&(connection)->counted.field, (now)->field)); \
} while (0)

static __always_inline void count_reading(struct edge_counts *counts, struct connection *connection,
					  struct reading *now)
{
	count_up(counts, connection, now, bytes_sent);
	count_up(counts, connection, now, bytes_received);
	count_up(counts, connection, now, packets_sent);
	count_up(counts, connection, now, packets_received);
	count_up(counts, connection, now, retransmits);
}

static __always_inline void count_rtt(struct edge_counts *counts, struct tcp_sock *tp)
{
	u64 rtt = tp->srtt_us >> 3;

	if (!rtt)
		return;
	add(counts->rtt_count, 1);
	add(counts->rtt_sum_us, rtt);
	if (rtt < counts->rtt_min_us)
		counts->rtt_min_us = rtt;
	if (rtt > counts->rtt_max_us)
		counts->rtt_max_us = rtt;
}

static __always_inline struct edge_counts *counts_of_connection(struct connection *connection)
{
	bool folded = connection->folded;
	struct edge_counts *counts = counts_of(&connection->key, &folded);

	connection->folded = folded;
	if (counts)
		counts->last_ns = bpf_ktime_get_ns();
	return counts;
}

static __always_inline void read_ports(struct sock *sk, struct edge_key *key)
{
	u16 local = sk->__sk_common.skc_num, peer = __builtin_bswap16(sk->__sk_common.skc_dport);

	key->port = key->role == ROLE_CLIENT ? peer : local;
	key->client_port = !per_flow ? 0 : key->role == ROLE_CLIENT ? local : peer;
	key->protocol = IPPROTO_TCP;
}

#endif
