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
	u8 padding;
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

/* The peer that the current task noted in this call. Returns false if it noted none. */
static __always_inline bool take_peer(struct sock *sk, struct udp_state *state,
				      struct udp_peer *peer)
{
	struct task_and_socket key = { .task = bpf_get_current_pid_tgid() };
	struct udp_peer *noted;

	if (state->task == key.task) {
		*peer = state->peer;
		__sync_lock_test_and_set(&state->task, 0);
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

/* Which end a socket is. The first message decides, and whether the program chose its port. */
static __always_inline void decide_role(struct udp_state *state, bool is_bound, bool is_connected,
					bool sent)
{
	if (!sent) {
		state->role = ROLE_SERVER;
		state->confidence = is_bound ? LISTENER : GUESSED;
	} else if (is_bound && !is_connected) {
		state->role = ROLE_SERVER;
		state->confidence = GUESSED;
	} else {
		state->role = ROLE_CLIENT;
		state->confidence = is_bound ? GUESSED : OBSERVED;
	}
}

static __always_inline int count_message(struct sock *sk, int result, bool sent)
{
	struct task_struct *task = bpf_get_current_task_btf();
	u16 family = sk->__sk_common.skc_family, peer_port;
	struct edge_counts *counts;
	struct udp_state *state;
	struct udp_peer peer;
	struct edge_key key = { .protocol = IPPROTO_UDP };
	u32 confidence = OBSERVED;
	bool is_bound, has_role, folded = false;

	if (sk->sk_protocol != IPPROTO_UDP || (family != AF_INET && family != AF_INET6))
		return 0;
	if (result == -EAGAIN || result == -ERESTARTSYS) {
		/* A receive has noted no peer then. */
		if (sent)
			forget_peer(sk);
		return 0;
	}
	read_addresses(sk, &key);
	peer_port = __builtin_bswap16(sk->__sk_common.skc_dport);
	is_bound = sk->sk_userlocks & SOCK_BINDPORT_LOCK;
	key.role = ROLE_CLIENT;
	/* Most clients need no storage: connected, with a port that the kernel chose. */
	has_role = is_bound || !peer_port;
	if (has_role || has_other_peers) {
		state = bpf_sk_storage_get(&udp_sockets, sk, 0,
					   has_role ? BPF_SK_STORAGE_GET_F_CREATE : 0);
		if (!state && has_role) {
			lose(UNTRACKED_SOCKETS);
			return 0;
		}
		if (state && has_role) {
			if (!state->role)
				decide_role(state, is_bound, peer_port, sent);
			key.role = state->role;
			confidence = state->confidence;
		}
		if (state && take_peer(sk, state, &peer)) {
			peer_port = peer.port;
			__builtin_memcpy(key.peer, peer.address, 16);
		} else if (state && !peer_port) {
			peer_port = state->peer.port;
			__builtin_memcpy(key.peer, state->peer.address, 16);
		}
	}
	identify_program(task, &key);
	key.port = key.role == ROLE_CLIENT ? peer_port : sk->__sk_common.skc_num;
	if (per_flow)
		key.client_port = key.role == ROLE_CLIENT ? sk->__sk_common.skc_num : peer_port;
	if (streaming) {
		read_program(task, &key);
		send_event(&key, sent ? SENT : RECEIVED, result, task->tgid, confidence);
		return 0;
	}
	counts = bpf_map_lookup_elem(current_edges(), &key);
	if (!counts) {
		read_program(task, &key);
		counts = counts_of(&key, &folded);
	}
	if (!counts)
		return 0;
	counts->pid = task->tgid;
	counts->confidence |= confidence;
	touch(counts);
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
