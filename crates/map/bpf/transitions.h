/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* TCP connections as they open and close. */
#ifndef TARE_MAP_TRANSITIONS_H
#define TARE_MAP_TRANSITIONS_H

#include "tcp.h"

/* The process that runs `find_listeners`. */
u32 tracer;

/* Ends a connection that is open: no program ran for its event CLOSE, and its program keeps the
 * socket. */
static __always_inline void close_unseen(struct connection *connection, struct sock *sk,
					 struct tcp_sock *tp)
{
	if (__sync_val_compare_and_swap(&connection->state, OPEN, CLOSED) != OPEN)
		return;
	read_socket(tp, sk, &connection->last);
	/* A socket that its program disconnected since has none of its counters. */
	if (connection->last.packets_sent < connection->counted.packets_sent ||
	    connection->last.packets_received < connection->counted.packets_received)
		connection->last = connection->counted;
	connection->error = sk->sk_err;
	count_end(connection, tp);
}

/* The record of a socket that begins anew. Another CPU may still count the end of its earlier
 * connection, by the earlier record: that is freed when no program runs that has it. */
static __always_inline struct connection *new_record(struct sock *sk)
{
	struct connection *connection;

	bpf_sk_storage_delete(&connections, sk);
	connection = bpf_sk_storage_get(&connections, sk, 0, BPF_SK_STORAGE_GET_F_CREATE);
	if (!connection)
		lose(UNTRACKED_SOCKETS);
	return connection;
}

static __always_inline void connecting(struct sock *sk, struct task_struct *task)
{
	struct tcp_sock *tp = bpf_skc_to_tcp_sock(sk);
	struct connection *connection = bpf_sk_storage_get(&connections, sk, 0, 0);

	if (connection && tp && !streaming)
		close_unseen(connection, sk, tp);
	connection = new_record(sk);
	if (!connection)
		return;
	connection->state = CONNECTING;
	connection->pid = task->tgid;
	connection->key.role = ROLE_CLIENT;
	read_program(task, &connection->key);
	read_addresses(sk, &connection->key);
	read_ports(sk, &connection->key);
}

static __always_inline void listening(struct sock *sk)
{
	struct connection *connection = new_record(sk);
	struct task_struct *task = bpf_get_current_task_btf();

	if (!connection)
		return;
	connection->state = LISTENING;
	connection->pid = task->tgid;
	connection->owner_listened = true;
	connection->key.role = ROLE_SERVER;
	read_program(task, &connection->key);
}

/* Counts a connection as opened, or sends an event: then it returns false. */
static __always_inline bool count_opening(struct connection *connection, struct sock *sk,
					  bool is_client)
{
	struct edge_counts *counts;

	connection->key.role = is_client ? ROLE_CLIENT : ROLE_SERVER;
	read_addresses(sk, &connection->key);
	read_ports(sk, &connection->key);
	adopt(connection);
	connection->opened = true;
	if (streaming) {
		send_event(&connection->key, OPENED, 0, connection->pid, OBSERVED);
		return false;
	}
	counts = counts_of_connection(connection);
	if (counts) {
		counts->pid = connection->pid;
		counts->confidence |= OBSERVED;
		add(counts->opened, 1);
	}
	return true;
}

static __always_inline void established(struct sock *sk, bool is_client)
{
	struct tcp_sock *tp = bpf_skc_to_tcp_sock(sk);
	struct connection *connection;
	bool counts;

	connection = bpf_sk_storage_get(&connections, sk, 0, BPF_SK_STORAGE_GET_F_CREATE);
	if (!connection) {
		lose(UNTRACKED_SOCKETS);
		return;
	}
	counts = count_opening(connection, sk, is_client || connection->state == CONNECTING);
	/* No other program changes it now: `drain` and `find_connections` read the kernel's state, which
	 * changes after this event. */
	__sync_lock_test_and_set(&connection->state, OPEN);
	if (counts && connection->has_next && tp && hold(connection, OPEN))
		release(connection, tp);
}

/* Counts a connection as opened of which the kernel's state says that it is connected: no program ran
 * for its event ESTABLISHED. If one did, the connection has opened, and may have closed, since the
 * state was read. */
static __always_inline void open_unseen(struct connection *connection, struct sock *sk,
					struct tcp_sock *tp)
{
	u32 state = connection->state;

	if ((state == LISTENING || state == CONNECTING) &&
	    is_connected(sk->__sk_common.skc_state) && hold(connection, state)) {
		count_opening(connection, sk, state == CONNECTING);
		release(connection, tp);
	}
}

/* A program closes a connection that another one may have listened for (inetd, systemd). */
static __always_inline void closing(struct sock *sk)
{
	struct connection *connection = bpf_sk_storage_get(&connections, sk, 0, 0);
	struct tcp_sock *tp = bpf_skc_to_tcp_sock(sk);
	struct task_struct *task = bpf_get_current_task_btf();
	struct edge_key key = {};

	if (streaming || !connection || !tp)
		return;
	open_unseen(connection, sk, tp);
	/* Or connect() was called before the tracer saw it. */
	if (!connection->owner_listened && (connection->key.program || !connection->opened))
		return;
	if (connection->state != OPEN && connection->state != HELD)
		return;
	connection->owner_listened = false;
	/* The tracer closes what its iterator still had when the program closed it. */
	if (connection->pid == task->tgid || task->tgid == tracer)
		return;
	read_program(task, &key);
	if (key.program == connection->key.program && key.device == connection->key.device)
		return;
	if (key.program)
		give(connection, tp, &key, task->tgid);
}

/* The end of a connection whose event ESTABLISHED was lost. */
static __noinline void closed_unopened(struct connection *connection, struct sock *sk,
				     struct tcp_sock *tp, bool is_client)
{
	if (count_opening(connection, sk, is_client))
		count_end(connection, tp);
	else if (streaming == ALL_EVENTS)
		send_event(&connection->key, ENDED, connection->error, connection->pid, 0);
}

static __always_inline void closed(struct sock *sk, bool was_open)
{
	struct connection *connection;
	struct tcp_sock *tp = bpf_skc_to_tcp_sock(sk);
	struct edge_counts *counts;
	u32 state;

	/* A record that is new keeps `find_connections` from counting a connection that has closed. */
	connection = bpf_sk_storage_get(&connections, sk, 0, BPF_SK_STORAGE_GET_F_CREATE);
	if (!connection || !tp)
		return;
	read_socket(tp, sk, &connection->last);
	connection->error = sk->sk_err;
	state = __sync_lock_test_and_set(&connection->state, CLOSED);
	if (was_open && (state == CONNECTING || state == LISTENING)) {
		closed_unopened(connection, sk, tp, state == CONNECTING);
	} else if (state == CONNECTING) {
		adopt(connection);
		if (streaming) {
			send_event(&connection->key, FAILED, sk->sk_err, connection->pid, OBSERVED);
			return;
		}
		counts = counts_of_connection(connection);
		if (!counts)
			return;
		counts->pid = connection->pid;
		counts->confidence |= OBSERVED;
		add(counts->retransmits, tp->total_retrans);
		count_error(&connection->key, connection->folded, FAILED_CONNECT, sk->sk_err);
	} else if (state == OPEN && streaming == ALL_EVENTS) {
		send_event(&connection->key, ENDED, sk->sk_err, connection->pid, 0);
	} else if (state == OPEN && !streaming) {
		count_end(connection, tp);
	}
}

SEC("tp_btf/inet_sock_set_state")
int BPF_PROG(tcp_state, struct sock *sk, int before, int after)
{
	u16 family = sk->__sk_common.skc_family;

	if (sk->sk_protocol != IPPROTO_TCP || (family != AF_INET && family != AF_INET6))
		return 0;
	switch (after) {
	case TCP_SYN_SENT:
		connecting(sk, bpf_get_current_task_btf());
		break;
	case TCP_LISTEN:
		listening(sk);
		break;
	case TCP_ESTABLISHED:
		established(sk, before == TCP_SYN_SENT);
		break;
	case TCP_FIN_WAIT1:
	case TCP_LAST_ACK:
		closing(sk);
		break;
	case TCP_CLOSE:
		closed(sk, is_connected(before));
		break;
	}
	return 0;
}

/* The kernel runs no program in itself: an interrupt can come while `tcp_state` runs, and bring the
 * ends of many connections. Those are counted here, when the kernel frees the sockets. */
SEC("tp_btf/tcp_destroy_sock")
int BPF_PROG(tcp_end, struct sock *sk)
{
	struct connection *connection = bpf_sk_storage_get(&connections, sk, 0, 0);
	struct tcp_sock *tp;

	if (!connection || connection->state == CLOSED)
		return 0;
	tp = bpf_skc_to_tcp_sock(sk);
	if (tp)
		closed(sk, tp->bytes_acked || tp->bytes_received);
	return 0;
}

#endif
