/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* UDP: every message is counted, as the kernel has no counters for a socket. A socket that is
 * connected has its peer; for others, and for messages of a connected socket that have another peer,
 * the hooks of sendmsg and recvmsg note the peer first. */
#ifndef TARE_MAP_UDP_H
#define TARE_MAP_UDP_H

#include "edges.h"

/* Tasks that may use sockets of others at one time, with one entry for each socket. */
#define PEERS 16384

#define EAGAIN 11
#define ERESTARTSYS 512	/* a signal came; the call begins again, or fails with EINTR */

/* To whom a message goes, or from whom it came. */
struct udp_peer {
	u8 address[16];
	u16 port;
	u16 padding;
};

struct udp_state {
	u64 task;		/* that changes `peer`: from its note to the end of its call */
	struct udp_peer peer;	/* the last one, also for calls without an address */
	u8 role;
	u8 confidence;
	u8 is_shared;		/* whether several tasks used it at one time */
	u8 is_older;		/* than the tracer: its first messages were not seen */
};

struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct udp_state);
} udp_sockets SEC(".maps");

/* Several tasks can use one socket at once: the others have their peers here until their calls end. */
struct task_and_socket {
	u64 task;
	u64 socket;
};

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, PEERS);
	__type(key, struct task_and_socket);
	__type(value, struct udp_peer);
} udp_peers SEC(".maps");

/* Whether a message of a connected socket ever had another peer. Few programs do that: until then,
 * no storage is searched for it. */
bool has_other_peers;

/* The verifier allows no arithmetic with the address of a socket, which the compiler makes of two
 * fields that are alternatives: it must read each. */
#define read_field(field) ({ u32 value = (field); asm volatile("" : "+r"(value)); value; })

static __always_inline bool is_connected_to(struct bpf_sock *sk, u32 words[4], u16 port)
{
	u32 ipv4 = read_field(sk->dst_ip4), ipv6 = read_field(sk->dst_ip6[3]);

	if (sk->dst_port != port)
		return false;
	if (sk->family == AF_INET)
		return ipv4 == words[3];
	return sk->dst_ip6[0] == words[0] && sk->dst_ip6[1] == words[1] &&
	       sk->dst_ip6[2] == words[2] && ipv6 == words[3];
}

static __always_inline int note_peer(struct bpf_sock_addr *ctx, bool is_ipv6)
{
	struct bpf_sock *sk = ctx->sk;
	struct udp_peer peer = { .port = __builtin_bswap16(ctx->user_port) };
	struct task_and_socket key = { .task = bpf_get_current_pid_tgid() };
	struct udp_state *state;
	u32 words[4] = { 0, 0, __builtin_bswap32(0xffff), 0 };

	if (!sk || ctx->protocol != IPPROTO_UDP)
		return 1;
	if (is_ipv6) {
		words[0] = ctx->user_ip6[0];
		words[1] = ctx->user_ip6[1];
		words[2] = ctx->user_ip6[2];
		words[3] = ctx->user_ip6[3];
	} else {
		words[3] = ctx->user_ip4;
	}
	if (sk->dst_port) {
		if (is_connected_to(sk, words, ctx->user_port))
			return 1;
		has_other_peers = true;
	}
	__builtin_memcpy(peer.address, words, 16);
	state = bpf_sk_storage_get(&udp_sockets, sk, 0, BPF_SK_STORAGE_GET_F_CREATE);
	if (!state) {
		lose(UNTRACKED_SOCKETS);
		return 1;
	}
	if (state->task == key.task ||
	    (!state->task && !__sync_val_compare_and_swap(&state->task, 0, key.task))) {
		state->peer = peer;
		return 1;
	}
	state->is_shared = true;
	key.socket = bpf_get_socket_cookie(ctx);
	if (bpf_map_update_elem(&udp_peers, &key, &peer, BPF_ANY))
		lose(LOST_UPDATES);
	return 1;
}

/* Lets others take what this task had, after all that it did before. x86 does not move a store before
 * what was read, so that needs no lock. */
static __always_inline void give_up(u64 *task)
{
#if defined(__TARGET_ARCH_x86)
	asm volatile("" ::: "memory");
	*(volatile u64 *)task = 0;
#else
	__sync_lock_test_and_set(task, 0);
#endif
}

/* The peer that the current task noted in this call. Returns false if it noted none. */
static __always_inline bool take_peer(struct sock *sk, struct udp_state *state,
				      struct udp_peer *peer)
{
	struct task_and_socket key = { .task = bpf_get_current_pid_tgid() };
	struct udp_peer *noted;

	if (state->task == key.task) {
		*peer = state->peer;
		give_up(&state->task);
		return true;
	}
	if (!state->is_shared)
		return false;
	key.socket = bpf_get_socket_cookie(sk);
	noted = bpf_map_lookup_elem(&udp_peers, &key);
	if (!noted)
		return false;
	*peer = *noted;
	bpf_map_delete_elem(&udp_peers, &key);
	return true;
}

/* The call ends without a message. */
static __always_inline void forget_peer(struct sock *sk)
{
	struct udp_state *state;
	struct udp_peer peer;

	if (sk->sk_protocol != IPPROTO_UDP || (sk->__sk_common.skc_dport && !has_other_peers))
		return;
	state = bpf_sk_storage_get(&udp_sockets, sk, 0, 0);
	if (state)
		take_peer(sk, state, &peer);
}

/* Whether all sockets were found that are older than the tracer: others are new from now on. */
bool has_found_all;

/* Of two ports, the service has the lower kind. */
enum kind_of_port { PRIVILEGED, REGISTERED, EPHEMERAL };

static __always_inline enum kind_of_port kind_of_port(struct sock *sk, u16 port)
{
	if (is_ephemeral(sk, port))
		return EPHEMERAL;
	return port < PRIVILEGED_PORTS ? PRIVILEGED : REGISTERED;
}

/* What a socket shows of itself at its first message that is seen. */
struct first_message {
	bool is_bound;		/* the program chose the local port */
	bool is_connected;
	bool has_peer;
	bool sent;
	int order;		/* below zero: the local port is the lower one */
};

/* Which end a socket is whose set-up was seen. The client sends first, but for a server with a lower
 * port than its clients. */
static __always_inline u8 role_of_new(struct first_message first, u8 *confidence)
{
	bool is_certain;

	if (!first.sent) {
		is_certain = first.order <= 0;
		*confidence = is_certain ? OBSERVED : GUESSED;
		return is_certain ? ROLE_SERVER : ROLE_CLIENT;
	}
	if (first.is_bound && first.order < 0) {
		*confidence = GUESSED;
		return ROLE_SERVER;
	}
	is_certain = !first.is_bound || first.is_connected || first.order > 0;
	*confidence = is_certain ? OBSERVED : GUESSED;
	return ROLE_CLIENT;
}

/* Which end a socket is that is older than the tracer: its ports show it. */
static __always_inline u8 role_of_older(struct first_message first, u8 *confidence)
{
	bool listens = first.is_bound && !first.is_connected;

	*confidence = GUESSED;
	if (first.order > 0)
		return ROLE_CLIENT;
	if (first.order < 0) {
		if (listens)
			*confidence = LISTENER;
		return ROLE_SERVER;
	}
	if (listens) {
		if (!first.sent)
			*confidence = LISTENER;
		return ROLE_SERVER;
	}
	/* A server asks for the addresses of its clients. */
	return first.sent || first.is_connected || !first.has_peer ? ROLE_CLIENT : ROLE_SERVER;
}

static __always_inline void decide_role(struct udp_state *state, struct sock *sk,
					struct first_message first, u16 peer_port)
{
	int peer = peer_port ? kind_of_port(sk, peer_port) : EPHEMERAL;

	first.has_peer = peer_port;
	first.order = (int)kind_of_port(sk, sk->__sk_common.skc_num) - peer;
	if (!has_found_all)
		state->is_older = true;
	if (state->is_older)
		state->role = role_of_older(first, &state->confidence);
	else
		state->role = role_of_new(first, &state->confidence);
}

/* How it is known that a connected socket with a port of the kernel's choice is a client. Those that
 * are older than the tracer have storage. */
static __always_inline u32 confidence_of_client(struct sock *sk)
{
	struct udp_state *state;

	if (!has_found_all)
		return GUESSED;
	if (!sk->sk_bpf_storage)
		return OBSERVED;
	state = bpf_sk_storage_get(&udp_sockets, sk, 0, 0);
	return state && state->is_older ? GUESSED : OBSERVED;
}

/* A socket that is older than the tracer; messages that came since then may have decided its role. */
static __always_inline void found_udp_socket(struct sock *sk)
{
	struct udp_state *state;

	state = bpf_sk_storage_get(&udp_sockets, sk, 0, BPF_SK_STORAGE_GET_F_CREATE);
	if (!state)
		lose(UNTRACKED_SOCKETS);
	else if (!state->role)
		state->is_older = true;
}

static __always_inline int count_message(struct sock *sk, int result, bool sent)
{
	struct task_struct *task = bpf_get_current_task_btf();
	u16 family = sk->__sk_common.skc_family, peer_port;
	struct edge_counts *counts;
	struct udp_state *state;
	struct udp_peer peer;
	struct edge_key key = { .protocol = IPPROTO_UDP };
	struct first_message first = { .sent = sent };
	u32 confidence = 0;
	bool has_role, is_first_in_tick, folded = false;

	if (result == -EAGAIN || result == -ERESTARTSYS) {
		/* A receive has noted no peer then. */
		if (sent)
			forget_peer(sk);
		return 0;
	}
	if (sk->sk_protocol != IPPROTO_UDP || (family != AF_INET && family != AF_INET6))
		return 0;
	read_addresses(sk, &key);
	peer_port = __builtin_bswap16(sk->__sk_common.skc_dport);
	first.is_connected = peer_port;
	first.is_bound = BPF_CORE_READ_BITFIELD(sk, sk_userlocks) & SOCK_BINDPORT_LOCK;
	key.role = ROLE_CLIENT;
	/* Most clients need no storage: connected, with a port that the kernel chose. */
	has_role = first.is_bound || !first.is_connected;
	if (has_role || has_other_peers) {
		state = bpf_sk_storage_get(&udp_sockets, sk, 0,
					   has_role ? BPF_SK_STORAGE_GET_F_CREATE : 0);
		if (!state && has_role) {
			lose(UNTRACKED_SOCKETS);
			return 0;
		}
		if (state && take_peer(sk, state, &peer)) {
			peer_port = peer.port;
			__builtin_memcpy(key.peer, peer.address, 16);
		} else if (state && !first.is_connected) {
			peer_port = state->peer.port;
			__builtin_memcpy(key.peer, state->peer.address, 16);
		}
		if (state && has_role) {
			if (!state->role)
				decide_role(state, sk, first, peer_port);
			key.role = state->role;
			confidence = state->confidence;
		}
	}
	identify_program(task, &key);
	key.port = key.role == ROLE_CLIENT ? peer_port : sk->__sk_common.skc_num;
	if (per_flow)
		key.client_port = key.role == ROLE_CLIENT ? sk->__sk_common.skc_num : peer_port;
	if (streaming) {
		if (!has_role)
			confidence = confidence_of_client(sk);
		read_program(task, &key);
		send_event(&key, sent ? SENT : RECEIVED, result, task->tgid, confidence);
		return 0;
	}
	counts = find_counts(uses_second, &key);
	if (!counts) {
		read_program(task, &key);
		counts = counts_of(&key, &folded);
	}
	if (!counts)
		return 0;
	counts->pid = task->tgid;
	is_first_in_tick = touch(counts);
	if (has_role)
		counts->confidence |= confidence;
	else if (is_first_in_tick && !(counts->confidence & OBSERVED))
		counts->confidence |= confidence_of_client(sk);
	if (result < 0) {
		count_error(&key, folded, sent ? FAILED_SEND : FAILED_RECEIVE, -result);
	} else if (sent) {
		add(counts->bytes_sent, result);
		add(counts->packets_sent, 1);
	} else {
		add(counts->bytes_received, result);
		add(counts->packets_received, 1);
	}
	return 0;
}

#endif
