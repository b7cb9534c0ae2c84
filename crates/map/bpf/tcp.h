/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* TCP: one record for each connection, in the storage of its socket. Edges change when a
 * connection opens or closes; bytes are the kernel's own counters, read at the end and by `drain`. */
#ifndef TARE_MAP_TCP_H
#define TARE_MAP_TCP_H

#include "edges.h"

/* Programs run on several CPUs at once. One of them HOLDs a connection that is open while it changes
 * its counts. Others never wait: they leave the new owner or the state CLOSED to `release`. */
enum state { UNKNOWN, LISTENING, CONNECTING, OPEN, HELD, CLOSED };

/* The kernel's counters of a connection. */
struct reading {
	u64 bytes_sent;
	u64 bytes_received;
	u64 packets_sent;
	u64 packets_received;
	u64 retransmits;
};

struct owner {
	u64 program;
	u32 device;
	u32 pid;
};

struct connection {
	struct edge_key key;
	struct reading counted;	/* what the edge has */
	struct reading last;	/* what the socket had when it closed */
	struct owner next;	/* who gets it, if `has_next` */
	u32 has_next;
	u32 pid;
	u32 state;
	int error;		/* of the socket when it closed */
	bool folded;
	bool opened;		/* its set-up was seen */
	bool owner_listened;	/* the owner is the one that called listen() */
};

/* A connection that a listener accepts begins with the listener's record. */
struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC | BPF_F_CLONE);
	__type(key, int);
	__type(value, struct connection);
} connections SEC(".maps");

static __always_inline bool is_connected(int state)
{
	return state != TCP_LISTEN && state != TCP_CLOSE && state != TCP_SYN_SENT &&
	       state != TCP_TIME_WAIT && state != TCP_NEW_SYN_RECV && state != TCP_SYN_RECV;
}

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

/* Brings an edge's counter from what was counted to `now`. Most do not change: then nothing is
 * locked. */
#define count_up(counts, connection, now, field) do {				\
	if ((now)->field == (connection)->counted.field)			\
		break;								\
	add((counts)->field, (now)->field - (connection)->counted.field);	\
	(connection)->counted.field = (now)->field;				\
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
		touch(counts);
	return counts;
}

static __always_inline void read_ports(struct sock *sk, struct edge_key *key)
{
	u16 local = sk->__sk_common.skc_num, peer = __builtin_bswap16(sk->__sk_common.skc_dport);

	key->port = key->role == ROLE_CLIENT ? peer : local;
	key->client_port = !per_flow ? 0 : key->role == ROLE_CLIENT ? local : peer;
	key->protocol = IPPROTO_TCP;
}

static __always_inline bool hold(struct connection *connection, u32 state)
{
	return __sync_val_compare_and_swap(&connection->state, state, HELD) == state;
}

/* The new owner of a connection of which nothing is counted yet. */
static __always_inline void adopt(struct connection *connection)
{
	if (!connection->has_next || !__sync_lock_test_and_set(&connection->has_next, 0))
		return;
	connection->key.program = connection->next.program;
	connection->key.device = connection->next.device;
	connection->pid = connection->next.pid;
}

/* Moves a connection, whose set-up was seen, to the edge of its new owner. */
static __noinline void change_owner(struct connection *connection)
{
	struct reading counted = connection->counted;
	struct edge_counts *counts = counts_of_connection(connection);

	if (counts) {
		add(counts->opened, -1);
		add(counts->bytes_sent, -counted.bytes_sent);
		add(counts->bytes_received, -counted.bytes_received);
		add(counts->packets_sent, -counted.packets_sent);
		add(counts->packets_received, -counted.packets_received);
		add(counts->retransmits, -counted.retransmits);
	}
	adopt(connection);
	connection->folded = false;
	counts = counts_of_connection(connection);
	if (counts) {
		counts->pid = connection->pid;
		counts->confidence |= OBSERVED;
		add(counts->opened, 1);
		add(counts->bytes_sent, counted.bytes_sent);
		add(counts->bytes_received, counted.bytes_received);
		add(counts->packets_sent, counted.packets_sent);
		add(counts->packets_received, counted.packets_received);
		add(counts->retransmits, counted.retransmits);
	}
}

/* The end of a connection that is closed and that no other program holds. */
static __noinline void count_end(struct connection *connection, struct tcp_sock *tp)
{
	struct edge_counts *counts;

	if (connection->has_next)
		change_owner(connection);
	counts = counts_of_connection(connection);
	if (!counts)
		return;
	count_reading(counts, connection, &connection->last);
	count_rtt(counts, tp);
	counts->pid = connection->pid;
	add(counts->closed, 1);
	if (connection->error)
		count_error(&connection->key, connection->folded, BROKEN, connection->error);
}

/* Ends what `hold` began, and does what others left meanwhile. */
static __always_inline void release(struct connection *connection, struct tcp_sock *tp)
{
	if (connection->has_next)
		change_owner(connection);
	if (__sync_val_compare_and_swap(&connection->state, HELD, OPEN) != HELD) {
		count_end(connection, tp);
		return;
	}
	if (!connection->has_next || !hold(connection, OPEN))
		return;
	change_owner(connection);
	if (__sync_val_compare_and_swap(&connection->state, HELD, OPEN) != HELD)
		count_end(connection, tp);
}

/* A connection gets another owner: now, or by the program that holds it or opens it. */
static __always_inline void give(struct connection *connection, struct tcp_sock *tp,
				 struct edge_key *program, u32 pid)
{
	connection->next.program = program->program;
	connection->next.device = program->device;
	connection->next.pid = pid;
	__sync_lock_test_and_set(&connection->has_next, 1);
	if (!streaming && hold(connection, OPEN))
		release(connection, tp);
}

#endif
