/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The maps, and how a change of an edge gets into them. */
#ifndef TARE_MAP_EDGES_H
#define TARE_MAP_EDGES_H

#include "kernel.h"
#include "map.h"

/* Whether an edge is one flow: both ports are in its key. */
const volatile bool per_flow = false;

/* Whether nothing is counted here, and events are sent instead. */
enum streaming { NO_EVENTS, SETUP_EVENTS, ALL_EVENTS };

const volatile u32 streaming = NO_EVENTS;

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 32768);
	__type(key, struct edge_key);
	__type(value, struct edge_counts);
} edges SEC(".maps");

/* Counts and errors get into the first maps, or into the second ones, while those that are not in use
 * are read and changed: flows of `aggregate` at each reading, edges when some have to make room. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 32768);
	__type(key, struct edge_key);
	__type(value, struct edge_counts);
} second_edges SEC(".maps");

/* In a map of its own: user space changes it as a whole. */
volatile u32 uses_second SEC(".data.switch") = 0;

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 24);
} events SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 4096);
	__type(key, struct error_key);
	__type(value, u64);
} errors SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 4096);
	__type(key, struct error_key);
	__type(value, u64);
} second_errors SEC(".maps");

/* Elements that were added to maps since user space made room in them. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, ADDITIONS);
	__type(key, u32);
	__type(value, u64);
} additions SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 4096);
	__type(key, struct program_key);
	__type(value, struct program_name);
} programs SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, LOSSES);
	__type(key, u32);
	__type(value, u64);
} losses SEC(".maps");

#define add(counter, number) __sync_fetch_and_add(&(counter), (number))

/* The clock is read once a tick of the kernel (1 to 10 ms): reading it costs as much as counting.
 * Returns whether this is the edge's first change in a tick. */
static __always_inline bool touch(struct edge_counts *counts)
{
	u64 tick = bpf_jiffies64();

	if (counts->tick == tick)
		return false;
	counts->tick = tick;
	counts->last_ns = bpf_ktime_get_ns();
	return true;
}

static __always_inline void lose(u32 what)
{
	u64 *count = bpf_map_lookup_elem(&losses, &what);

	if (count)
		(*count)++;
}

static __always_inline void send_event(struct edge_key *key, u32 kind, int value, u32 pid,
				       u32 confidence)
{
	struct event *event = bpf_ringbuf_reserve(&events, sizeof(*event), 0);

	if (!event) {
		lose(LOST_EVENTS);
		return;
	}
	event->key = *key;
	event->time_ns = bpf_ktime_get_ns();
	event->pid = pid;
	event->kind = kind;
	event->value = value;
	event->confidence = confidence;
	bpf_ringbuf_submit(event, 0);
}

/* Each map has a call of its own: the kernel looks up the elements of a map faster where it knows
 * which one it is. */
static __always_inline struct edge_counts *find_counts(bool in_second, struct edge_key *key)
{
	if (in_second)
		return bpf_map_lookup_elem(&second_edges, key);
	return bpf_map_lookup_elem(&edges, key);
}

static __always_inline void added(u32 what)
{
	u64 *number = bpf_map_lookup_elem(&additions, &what);

	if (number)
		add(*number, 1);
}

/* The counts of an edge, which is new if need be. `folded` is kept for each TCP socket: what was
 * counted in the edge `other` once stays there, so that opened and closed match. */
static __noinline struct edge_counts *counts_of(struct edge_key *key, bool *folded)
{
	struct edge_counts *counts;
	struct edge_key other = {};
	bool in_second = uses_second;

	if (!*folded) {
		counts = find_counts(in_second, key);
		if (counts)
			return counts;
		struct edge_counts fresh = { .first_ns = bpf_ktime_get_ns(), .rtt_min_us = ~0ULL };
		void *current = in_second ? (void *)&second_edges : (void *)&edges;

		if (!bpf_map_update_elem(current, key, &fresh, BPF_NOEXIST))
			added(ADDED_EDGES);
		counts = find_counts(in_second, key);
		if (counts)
			return counts;
		*folded = true;
	}
	lose(FOLDED);
	counts = find_counts(in_second, &other);
	if (!counts)
		lose(LOST_UPDATES);
	else if (!counts->first_ns)
		counts->first_ns = bpf_ktime_get_ns();
	return counts;
}

static __always_inline void count_error(struct edge_key *edge, bool folded, u32 kind, int number)
{
	struct error_key key = { .kind = kind, .number = number };
	void *current = uses_second ? (void *)&second_errors : (void *)&errors;
	u64 first_count = 1, *count;

	if (!folded) {
		key.edge = *edge;
		key.edge.client_port = 0;
	}
	count = bpf_map_lookup_elem(current, &key);
	if (!count) {
		if (!bpf_map_update_elem(current, &key, &first_count, BPF_NOEXIST)) {
			added(ADDED_ERRORS);
			return;
		}
		count = bpf_map_lookup_elem(current, &key);
	}
	if (count)
		add(*count, 1);
	else
		lose(LOST_ERRORS);
}

/* Addresses and the namespaces of a socket; the ports are the caller's. */
static __always_inline void read_addresses(struct sock *sk, struct edge_key *key)
{
	struct sock_common *common = &sk->__sk_common;

	if (common->skc_family == AF_INET6) {
		__builtin_memcpy(key->local, common->skc_v6_rcv_saddr.in6_u.u6_addr8, 16);
		__builtin_memcpy(key->peer, common->skc_v6_daddr.in6_u.u6_addr8, 16);
	} else {
		u32 local = common->skc_rcv_saddr, peer = common->skc_daddr;

		__builtin_memset(key->local, 0, 16);
		__builtin_memset(key->peer, 0, 16);
		key->local[10] = key->local[11] = key->peer[10] = key->peer[11] = 0xff;
		__builtin_memcpy(&key->local[12], &local, 4);
		__builtin_memcpy(&key->peer[12], &peer, 4);
	}
	key->cgroup = sk->sk_cgrp_data.cgroup->kn->id;
	key->netns = common->skc_net.net->ns.inum;
}

/* Whether the kernel chooses such ports for clients of the socket's namespace. */
static __always_inline bool is_ephemeral(struct sock *sk, u16 port)
{
	struct net *net = sk->__sk_common.skc_net.net;
	u16 low, high;

	if (bpf_core_field_exists(net->ipv4.ip_local_ports.range)) {
		u32 range = net->ipv4.ip_local_ports.range;

		low = range;
		high = range >> 16;
	} else {
		struct net___before_6_8 *older = (void *)net;

		low = older->ipv4.ip_local_ports.range[0];
		high = older->ipv4.ip_local_ports.range[1];
	}
	return port >= low && port <= high;
}

/* The executable of a task, by its inode and name: a file may have several names, and the number of an
 * inode is used again when its file was deleted. */
static __always_inline void identify_program(struct task_struct *task, struct edge_key *key)
{
	struct dentry *dentry = task->mm->exe_file->f_path.dentry;
	struct inode *inode = dentry->d_inode;

	key->program = inode->i_ino ^ (u64)dentry->d_name.hash << 32;
	key->device = inode->i_sb->s_dev;
}

/* The program whose name was recorded last, and the tick: one number, which is never half of another. */
static u64 recorded;

/* The same, and its name goes into `programs`. */
static __always_inline void read_program(struct task_struct *task, struct edge_key *key)
{
	u64 now;
	struct dentry *dentry = task->mm->exe_file->f_path.dentry;
	struct program_key program = {};

	identify_program(task, key);
	program.program = key->program;
	program.device = key->device;
	now = (program.program ^ (u64)program.device << 24) + (bpf_jiffies64() << 40);
	if (!program.program || recorded == now)
		return;
	recorded = now;
	if (bpf_map_lookup_elem(&programs, &program))
		return;
	struct program_name name = {};
	bpf_probe_read_kernel_str(name.name, sizeof(name.name), dentry->d_name.name);
	if (bpf_map_update_elem(&programs, &program, &name, BPF_ANY))
		lose(LOST_NAMES);
}

#endif
