/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the programs in the kernel and tare-map share. src/layout.rs has the same structures. */
#ifndef TARE_MAP_H
#define TARE_MAP_H

enum role { ROLE_OTHER, ROLE_CLIENT, ROLE_SERVER };

/* How the direction of an edge is known, one bit each. */
enum confidence { GUESSED = 1, LISTENER = 2, OBSERVED = 4 };

/* Addresses are IPv6, IPv4 ones are mapped (::ffff:a.b.c.d). */
struct edge_key {
	u8 local[16];
	u8 peer[16];
	u64 cgroup;
	u64 program;		/* inode and name of the executable; 0: the kernel or unknown */
	u32 device;		/* device of that inode */
	u32 netns;
	u16 port;		/* of the server */
	u16 client_port;	/* only for a map of flows */
	u8 protocol;
	u8 role;
	u16 padding;
};

struct edge_counts {
	u64 found;		/* connections that were open before the tracer started */
	u64 opened;
	u64 closed;
	u64 bytes_sent;
	u64 bytes_received;
	u64 packets_sent;
	u64 packets_received;
	u64 retransmits;
	u64 rtt_count;
	u64 rtt_sum_us;
	u64 rtt_min_us;
	u64 rtt_max_us;
	u64 first_ns;
	u64 last_ns;
	u64 tick;		/* of `last_ns` */
	u32 pid;		/* of the last owner */
	u32 confidence;
};

/* Which errors: a connect that failed, a connection that broke, a send or receive that failed. */
enum error_kind { FAILED_CONNECT, BROKEN, FAILED_SEND, FAILED_RECEIVE };

struct error_key {
	struct edge_key edge;
	u32 kind;
	u32 number;		/* errno; 0: the program gave up */
};

/* What a method of streaming sends, one for each connection or message. */
enum event_kind { FOUND, OPENED, FAILED, ENDED, SENT, RECEIVED };

struct event {
	struct edge_key key;
	u64 time_ns;
	u32 pid;
	u32 kind;
	int value;		/* bytes, or the error as a positive (FAILED, ENDED) or negative number */
	u32 confidence;
};

struct program_key {
	u64 program;		/* as in `struct edge_key` */
	u32 device;
	u32 padding;
};

struct program_name {
	char name[64];
};

/* What was not recorded as it should be. */
enum loss {
	FOLDED,			/* updates of the edge `other` because the map of edges is full */
	LOST_UPDATES,		/* not even that */
	UNTRACKED_SOCKETS,	/* no memory for a socket's storage */
	LOST_EVENTS,		/* the ring buffer is full */
	LOST_ERRORS,		/* the map of errors is full */
	LOST_LISTENERS,		/* the map of listeners is full */
	LOST_NAMES,		/* no memory for a program's name */
	LOST_OPEN,		/* the map of open connections by edge is full */
	LOSSES,
};

/* Maps in which user space makes room. */
enum addition { ADDED_EDGES, ADDED_ERRORS, ADDITIONS };

#endif
