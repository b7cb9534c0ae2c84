/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The counters of connections that are open. */
#ifndef TARE_MAP_DRAIN_H
#define TARE_MAP_DRAIN_H

#include "transitions.h"

SEC("iter/bpf_sk_storage_map")
int drain(struct bpf_iter__bpf_sk_storage_map *ctx)
{
	struct sock *sk = ctx->sk;
	struct connection *connection = ctx->value;
	struct edge_counts *counts;
	struct tcp_sock *tp;
	struct reading now;
	u32 state;

	if (!sk || !connection)
		return 0;
	tp = bpf_skc_to_tcp_sock(sk);
	if (!tp)
		return 0;
	/* It is open, and its event was lost: the kernel never runs a program in itself. If it was
	 * not, the connection has opened, and may have closed, since the state was read. */
	state = connection->state;
	if ((state == LISTENING || state == CONNECTING) &&
	    is_connected(sk->__sk_common.skc_state) && hold(connection, state)) {
		count_opening(connection, sk, state == CONNECTING);
		release(connection, tp);
	}
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

#endif
