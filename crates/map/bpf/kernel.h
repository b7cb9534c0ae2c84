/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The fields of the kernel's structures that the programs read. Their offsets are found at load
 * time from the kernel's BTF, so the order and the missing fields do not matter. */
#ifndef TARE_MAP_KERNEL_H
#define TARE_MAP_KERNEL_H

#include <linux/bpf.h>
#include <linux/types.h>
#include <stdbool.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>

typedef __u8 u8;
typedef __u16 u16;
typedef __u32 u32;
typedef __u64 u64;

#define AF_INET 2
#define AF_INET6 10
#define IPPROTO_TCP 6
#define IPPROTO_UDP 17
#define MSG_PEEK 2
#define MSG_ERRQUEUE 0x2000
#define SOCK_DONE (1UL << 1)		/* the peer's FIN has arrived: enum sock_flags */
#define SOCK_BINDPORT_LOCK 8		/* the program chose the local port */
#define PRIVILEGED_PORTS 1024

enum {
	TCP_ESTABLISHED = 1,
	TCP_SYN_SENT = 2,
	TCP_SYN_RECV = 3,
	TCP_FIN_WAIT1 = 4,
	TCP_TIME_WAIT = 6,
	TCP_CLOSE = 7,
	TCP_LAST_ACK = 9,
	TCP_LISTEN = 10,
	TCP_NEW_SYN_RECV = 12,
};

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct ns_common {
	u32 inum;
};

struct local_ports {
	u32 range;
};

struct netns_ipv4 {
	struct local_ports ip_local_ports;
};

struct net {
	struct ns_common ns;
	struct netns_ipv4 ipv4;
};

/* Before Linux 6.8. */
struct local_ports___before_6_8 {
	int range[2];
};

struct netns_ipv4___before_6_8 {
	struct local_ports___before_6_8 ip_local_ports;
};

struct net___before_6_8 {
	struct netns_ipv4___before_6_8 ipv4;
};

typedef struct {
	struct net *net;
} possible_net_t;

struct in6_addr {
	union {
		u8 u6_addr8[16];
	} in6_u;
};

struct sock_common {
	u32 skc_daddr;
	u32 skc_rcv_saddr;
	u16 skc_dport;
	u16 skc_num;
	u16 skc_family;
	volatile unsigned char skc_state;
	possible_net_t skc_net;
	struct in6_addr skc_v6_daddr;
	struct in6_addr skc_v6_rcv_saddr;
	unsigned long skc_flags;
};

struct kernfs_node {
	u64 id;
};

struct cgroup {
	struct kernfs_node *kn;
};

struct sock_cgroup_data {
	struct cgroup *cgroup;
};

struct bpf_local_storage;

struct sock {
	struct sock_common __sk_common;
	u8 sk_userlocks;	/* of some kernels, a part of a byte */
	u16 sk_protocol;
	u16 sk_type;
	int sk_err;
	u32 sk_max_ack_backlog;
	struct sock_cgroup_data sk_cgrp_data;
	struct bpf_local_storage *sk_bpf_storage;
};

struct tcp_sock {
	u64 bytes_sent;
	u64 bytes_acked;
	u64 bytes_received;
	u64 bytes_retrans;
	u32 data_segs_out;
	u32 data_segs_in;
	u32 total_retrans;
	u32 srtt_us;
};

struct udp_sock {
	u64 placeholder;
};

struct socket {
	struct sock *sk;
};

struct super_block {
	u32 s_dev;
};

struct inode {
	unsigned long i_ino;
	struct super_block *i_sb;
};

struct qstr {
	u32 hash;
	const unsigned char *name;
};

struct dentry {
	struct qstr d_name;
	struct inode *d_inode;
};

struct path {
	struct dentry *dentry;
};

struct file {
	struct path f_path;
};

struct mm_struct {
	struct file *exe_file;
};

struct task_struct {
	int pid;
	int tgid;
	struct mm_struct *mm;
};

#pragma clang attribute pop

/* The arguments of iterators have fixed offsets and need no relocation. */
struct bpf_iter_meta;

struct bpf_iter__task_file {
	struct bpf_iter_meta *meta;
	struct task_struct *task;
	u32 fd;
	struct file *file;
};

struct bpf_iter__tcp {
	struct bpf_iter_meta *meta;
	struct sock_common *sk_common;
};

struct bpf_iter__bpf_sk_storage_map {
	struct bpf_iter_meta *meta;
	struct bpf_map *map;
	struct sock *sk;
	void *value;
};

#endif
