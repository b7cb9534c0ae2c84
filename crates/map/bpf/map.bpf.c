// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "tcp.h"
#include "udp.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/* The process that runs `find_listeners`. */
u32 tracer;

/* ---- Connections as they open and close ---- */

static __always_inline bool is_connected(int state)
{
	return state != TCP_LISTEN && state != TCP_CLOSE && state != TCP_SYN_SENT &&
	       state != TCP_TIME_WAIT && state != TCP_NEW_SYN_RECV && state != TCP_SYN_RECV;
}

static __always_inline void connecting(struct sock *sk, struct task_struct *task)
{
	struct connection *connection;

	connection = bpf_sk_storage_get(&connections, sk, 0, BPF_SK_STORAGE_GET_F_CREATE);
	if (!connection) {
		lose(UNTRACKED_SOCKETS);
		return;
	}
	/* A socket can be used again after a connect that failed. */
	__builtin_memset(connection, 0, sizeof(*connection));
	connection->state = CONNECTING;
	connection->pid = task->tgid;
	connection->key.role = ROLE_CLIENT;
	read_program(task, &connection->key);
	read_addresses(sk, &connection->key);
	read_ports(sk, &connection->key);
}

static __always_inline void listening(struct sock *sk)
{
	struct connection *connection;
	struct task_struct *task = bpf_get_current_task_btf();

	connection = bpf_sk_storage_get(&connections, sk, 0, BPF_SK_STORAGE_GET_F_CREATE);
	if (!connection) {
		lose(UNTRACKED_SOCKETS);
		return;
	}
	__builtin_memset(connection, 0, sizeof(*connection));
	connection->state = LISTENING;
	connection->pid = task->tgid;
	connection->owner_listened = true;
	connection->key.role = ROLE_SERVER;
	read_program(task, &connection->key);
}

static __always_inline void established(struct sock *sk, bool is_client)
{
	struct connection *connection;
	struct edge_counts *counts;
	struct tcp_sock *tp = bpf_skc_to_tcp_sock(sk);

	connection = bpf_sk_storage_get(&connections, sk, 0, BPF_SK_STORAGE_GET_F_CREATE);
	if (!connection) {
		lose(UNTRACKED_SOCKETS);
		return;
	}
	connection->key.role = is_client || connection->state == CONNECTING ? ROLE_CLIENT : ROLE_SERVER;
	read_addresses(sk, &connection->key);
	read_ports(sk, &connection->key);
	adopt(connection);
	connection->opened = true;
	if (streaming) {
		connection->state = OPEN;
		send_event(&connection->key, OPENED, 0, connection->pid, OBSERVED);
		return;
	}
	counts = counts_of_connection(connection);
	if (counts) {
		counts->pid = connection->pid;
		counts->confidence |= OBSERVED;
		add(counts->opened, 1);
	}
	__sync_lock_test_and_set(&connection->state, OPEN);
	if (connection->has_next && tp && hold(connection, OPEN))
		release(connection, tp);
}

/* A program closes a connection that another one may have listened for (inetd, systemd). */
static __always_inline void closing(struct sock *sk)
{
	struct connection *connection = bpf_sk_storage_get(&connections, sk, 0, 0);
	struct tcp_sock *tp = bpf_skc_to_tcp_sock(sk);
	struct task_struct *task = bpf_get_current_task_btf();
	struct edge_key key = {};

	if (streaming || !connection || !tp || !connection->owner_listened)
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

static __always_inline void closed(struct sock *sk)
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
	if (state == CONNECTING) {
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
		closed(sk);
		break;
	}
	return 0;
}

/* ---- Messages ---- */

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
	if (flags & (MSG_PEEK | MSG_ERRQUEUE))
		return 0;
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

/* ---- Connections that are open ---- */

SEC("iter/bpf_sk_storage_map")
int drain(struct bpf_iter__bpf_sk_storage_map *ctx)
{
	struct sock *sk = ctx->sk;
	struct connection *connection = ctx->value;
	struct edge_counts *counts;
	struct tcp_sock *tp;
	struct reading now;

	if (!sk || !connection)
		return 0;
	/* It was accepted, and its event was lost: the kernel never runs a program in itself. */
	if (connection->state == LISTENING && is_connected(sk->__sk_common.skc_state))
		established(sk, false);
	if (connection->state != OPEN)
		return 0;
	tp = bpf_skc_to_tcp_sock(sk);
	if (!tp)
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

/* ---- Connections that were there before ---- */

/* Ports that something listens at, by namespace; the value is the backlog and one. */
struct listener_key {
	u32 netns;
	u16 port;
	u16 padding;
};

struct listener {
	struct edge_key owner;	/* only the program */
	u32 pid;
	u32 backlog;
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 65536);
	__type(key, struct listener_key);
	__type(value, struct listener);
} listeners SEC(".maps");

static __always_inline bool is_ephemeral(struct sock *sk, u16 port)
{
	u32 range = sk->__sk_common.skc_net.net->ipv4.ip_local_ports.range;
	u16 low = range, high = range >> 16;

	return port >= low && port <= high;
}

/* The side of a connection whose set-up was not seen, and how it is known. */
static __always_inline u8 role_of(struct sock *sk, u32 *confidence)
{
	u16 local = sk->__sk_common.skc_num, peer = __builtin_bswap16(sk->__sk_common.skc_dport);
	struct listener_key key = { .netns = sk->__sk_common.skc_net.net->ns.inum, .port = local };
	struct listener *listener = bpf_map_lookup_elem(&listeners, &key);
	u32 backlog = sk->sk_max_ack_backlog;

	/* An accepted socket has the backlog of its listener, a client's has none. */
	*confidence = LISTENER;
	if (backlog || (listener && !listener->backlog))
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
	struct listener listener = { .backlog = sk->sk_max_ack_backlog };
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
	listener.owner = connection->key;
	listener.pid = connection->pid;
	bpf_map_update_elem(&listeners, &key, &listener, BPF_ANY);
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
	/* It is known already, perhaps by another descriptor, or has closed. */
	if (!hold(connection, UNKNOWN))
		return;
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

static __always_inline struct sock *tcp_socket_of(struct file *file)
{
	struct socket *socket = file ? bpf_sock_from_file(file) : NULL;
	struct sock *sk = socket ? socket->sk : NULL;

	if (!sk || sk->sk_protocol != IPPROTO_TCP)
		return NULL;
	if (sk->__sk_common.skc_family != AF_INET && sk->__sk_common.skc_family != AF_INET6)
		return NULL;
	return sk;
}

SEC("iter/task_file")
int find_listeners(struct bpf_iter__task_file *ctx)
{
	struct task_struct *task = ctx->task;
	struct sock *sk = tcp_socket_of(ctx->file);

	tracer = bpf_get_current_pid_tgid() >> 32;
	if (task && sk && sk->__sk_common.skc_state == TCP_LISTEN)
		found_listener(sk, task);
	return 0;
}

SEC("iter/task_file")
int find_connections(struct bpf_iter__task_file *ctx)
{
	struct task_struct *task = ctx->task;
	struct sock *sk = tcp_socket_of(ctx->file);

	if (!task || !sk)
		return 0;
	if (is_connected(sk->__sk_common.skc_state))
		found_connection(sk, task);
	else if (sk->__sk_common.skc_state == TCP_SYN_SENT)
		found_connecting(sk, task);
	return 0;
}
