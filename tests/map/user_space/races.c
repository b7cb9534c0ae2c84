/* SPDX-License-Identifier: Apache-2.0 */
/* Two CPUs change one connection at the same time. They take turns: the first, the second, the first,
 * the second and the first, each from one of its steps to another, for all steps. The edges must be
 * those of one after the other. */
#include "map.bpf.c"
#include "two_cpus.h"

/* ---- What happens to the connection ---- */

static void change_state(int state)
{
	/* As in the kernel: first the event, then the state. */
	tcp_state(&sock, sock.__sk_common.skc_state, state);
	sock.__sk_common.skc_state = state;
}

static void connects(void) { current = &ftpd; change_state(TCP_SYN_SENT); }
static void answers(void) { change_state(TCP_ESTABLISHED); }
static void breaks(void) { change_state(TCP_CLOSE); }

/* The kernel runs no program in itself: the events of an interrupt are lost. */
static void answers_unseen(void)
{
	sock.__sk_common.skc_state = TCP_ESTABLISHED;
	tcp_sock.bytes_acked = 1;
	tcp_sock.bytes_sent = 100;
}

static void breaks_unseen(void) { sock.__sk_common.skc_state = TCP_CLOSE; }
static void nothing_happens(void) {}
static void is_freed(void) { tcp_end(&sock); }

static void breaks_unseen_and_is_freed(void)
{
	breaks_unseen();
	is_freed();
}

static void breaks_and_is_freed(void)
{
	breaks();
	is_freed();
}

/* To another port. */
static void connects_again(void)
{
	sock.__sk_common.skc_dport = 0x5100;
	connects();
}

static void breaks_and_connects_again(void)
{
	breaks();
	connects_again();
}

static void answers_and_breaks(void)
{
	answers();
	breaks();
}

/* A program that inherited the connection closes it. */
static void is_closed(void)
{
	current = &ftpd;
	change_state(TCP_FIN_WAIT1);
}

static void is_closed_and_ends(void)
{
	is_closed();
	tcp_sock.bytes_sent += 5;
	breaks();
}

static void is_drained(void)
{
	drain(&(struct bpf_iter__bpf_sk_storage_map){ .sk = &sock, .value = record });
}

static void is_found(void)
{
	find_connections(&(struct bpf_iter__task_file){ .task = &ftpd, .file = &executables[0] });
}

/* ---- Before ---- */

/* Older than the tracer. */
static void open_before(void)
{
	sock.__sk_common.skc_state = TCP_ESTABLISHED;
	tcp_sock.bytes_sent = 1000;
}

static void connecting_before(void) { sock.__sk_common.skc_state = TCP_SYN_SENT; }

/* Accepted: it has the record of a listener, of which the program is known or not. */
static void accepted(void)
{
	create_record();
	record->state = LISTENING;
	record->pid = inetd.tgid;
	record->owner_listened = true;
	record->key.role = ROLE_SERVER;
	record->key.program = inodes[0].i_ino;
	record->key.device = disk.s_dev;
	sock.__sk_common.skc_state = TCP_SYN_RECV;
	answers();
	tcp_sock.bytes_sent = 100;
}

/* Accepted by a listener that was found, before events were seen or by one that was missed. */
static void accepted_before(void)
{
	accepted();
	element_count = 0;
	record->state = LISTENING;
	record->opened = false;
}

static void connecting_seen(void) { connects(); }

static void answered_unseen(void)
{
	connects();
	answers_unseen();
}

/* Accepted, and its event was lost. */
static void accepted_unseen(void)
{
	accepted_before();
	answers_unseen();
}

static void broken_unseen(void)
{
	accepted();
	breaks_unseen();
}

/* A client's, whose program keeps the socket. */
static void kept(void)
{
	connects();
	answers();
	tcp_sock.bytes_sent = 100;
}

static void kept_and_broken_unseen(void)
{
	kept();
	breaks_unseen();
}

/* And disconnects it, which takes its counters. */
static void drained_broken_unseen_and_disconnected(void)
{
	kept();
	tcp_sock.data_segs_out = 1;
	is_drained();
	breaks_unseen();
	tcp_sock.bytes_sent = 0;
	tcp_sock.data_segs_out = 0;
}

static void accepted_unknown(void)
{
	sock.__sk_common.skc_state = TCP_SYN_RECV;
	answers();
	tcp_sock.bytes_sent = 100;
}

/* ---- After ---- */

/* The edge of a program, or none. */
static struct edge_counts *edge_of(struct inode *inode)
{
	struct edge_counts *found = NULL;

	for (unsigned at = 0; at < element_count; at++) {
		struct edge_key *key = (void *)elements[at].key;
		struct edge_counts *counts = (void *)elements[at].value;

		if (elements[at].map != &edges || key->program != (inode ? inode->i_ino : 0))
			continue;
		if (found) {
			printf("two edges\n");
			exit(1);
		}
		found = counts;
	}
	return found;
}

struct sums {
	u64 found, opened, closed, sent;
};

static const struct sums nothing;

static bool has(struct inode *inode, struct sums sums)
{
	struct edge_counts *counts = edge_of(inode);
	struct sums have = nothing;

	if (counts)
		have = (struct sums){ counts->found, counts->opened, counts->closed, counts->bytes_sent };
	if (!memcmp(&have, &sums, sizeof(sums)))
		return true;
	printf("inode %lu: found %llu, opened %llu, closed %llu, sent %llu; ", inode ? inode->i_ino : 0,
	       have.found, have.opened, have.closed, have.sent);
	return false;
}

static bool nothing_is_open(void)
{
	struct edge_counts *of[] = { edge_of(NULL), edge_of(&inodes[0]), edge_of(&inodes[1]) };

	for (unsigned at = 0; at < 3; at++)
		if (of[at] && of[at]->found + of[at]->opened != of[at]->closed)
			return false;
	return true;
}

static bool only_ftpd_has_closed(void)
{
	return has(NULL, nothing) && has(&inodes[0], nothing) &&
	       has(&inodes[1], (struct sums){ .opened = 1, .closed = 1, .sent = tcp_sock.bytes_sent });
}

static bool only_ftpd_has_closed_and_has_sent(void)
{
	return has(NULL, nothing) && has(&inodes[0], nothing) &&
	       has(&inodes[1], (struct sums){ .opened = 1, .closed = 1, .sent = 100 });
}

static bool only_ftpd_has_it_open(void)
{
	return has(NULL, nothing) && has(&inodes[0], nothing) &&
	       has(&inodes[1], (struct sums){ .opened = 1 });
}

static bool ftpd_has_opened_one(void)
{
	struct edge_counts *counts = edge_of(&inodes[1]);

	return counts && counts->opened == 1 && !counts->closed;
}

static bool ftpd_has_found_one(void)
{
	return has(NULL, nothing) && has(&inodes[0], nothing) &&
	       has(&inodes[1], (struct sums){ .found = 1 });
}

static bool ftpd_has_failed_once(void)
{
	u64 failed = 0;

	for (unsigned at = 0; at < element_count; at++)
		if (elements[at].map == &errors)
			failed += *(u64 *)elements[at].value;
	return has(&inodes[1], nothing) && failed == 1;
}

static bool it_ended_once(void)
{
	return has(&inodes[0], (struct sums){ .opened = 1, .closed = 1, .sent = tcp_sock.bytes_sent });
}

/* What was opened without a program may also end without one. */
static bool nothing_is_open_and_bytes_are_counted_once(void)
{
	struct edge_counts *ownerless = edge_of(NULL), *owned = edge_of(&inodes[1]);
	u64 sent = (ownerless ? ownerless->bytes_sent : 0) + (owned ? owned->bytes_sent : 0);

	return nothing_is_open() && sent == tcp_sock.bytes_sent;
}

static const struct race {
	const char *name;
	void (*before)(void), (*first)(void), (*second)(void), (*last)(void);
	bool (*is_right)(void);
} races[] = {
	{ "found_closes", open_before, is_found, breaks, NULL, nothing_is_open },
	{ "closed_is_found", open_before, breaks, is_found, NULL, nothing_is_open },
	{ "found_is_established", connecting_before, is_found, answers, NULL, only_ftpd_has_it_open },
	{ "established_is_found", connecting_before, answers, is_found, NULL, only_ftpd_has_it_open },
	{ "found_is_established_and_closes", connecting_before, is_found, answers_and_breaks, NULL, nothing_is_open },
	{ "found_later_closes", accepted_unknown, is_found, breaks, NULL, nothing_is_open_and_bytes_are_counted_once },
	{ "accepted_before_is_found", accepted_before, is_found, is_found, is_drained, ftpd_has_found_one },
	{ "accepted_before_is_found_and_closes", accepted_before, is_found, breaks, NULL, nothing_is_open },
	{ "unknown_owner_closes", accepted_unknown, is_closed, is_drained, breaks, only_ftpd_has_closed },
	{ "unseen_is_drained", accepted_before, is_drained, is_drained, breaks, it_ended_once },
	{ "unseen_is_drained_and_closes", accepted_before, is_drained, breaks, NULL, nothing_is_open },
	{ "drained_changes_owner", accepted, is_drained, is_closed, breaks, only_ftpd_has_closed },
	{ "drained_changes_owner_and_closes", accepted, is_drained, is_closed_and_ends, NULL, only_ftpd_has_closed },
	{ "owner_changes_when_drained", accepted, is_closed, is_drained, breaks, only_ftpd_has_closed },
	{ "owner_changes_and_closes_when_drained", accepted, is_closed_and_ends, is_drained, NULL, only_ftpd_has_closed },
	{ "drained_closes", accepted, is_drained, breaks, NULL, it_ended_once },
	{ "closed_when_drained", accepted, breaks, is_drained, NULL, it_ended_once },
	{ "freed_without_a_close", accepted, is_drained, breaks_unseen_and_is_freed, NULL, it_ended_once },
	{ "freed_after_a_close", accepted, breaks_and_is_freed, is_drained, NULL, it_ended_once },
	{ "closes_unseen_when_drained", accepted, breaks_unseen, is_drained, is_drained, it_ended_once },
	{ "closed_unseen_is_drained", broken_unseen, is_drained, is_drained, nothing_happens, it_ended_once },
	{ "closed_unseen_is_freed_when_drained", broken_unseen, is_drained, is_freed, NULL, it_ended_once },
	{ "closed_unseen_connects_again", kept_and_broken_unseen, connects_again, nothing_happens, NULL, only_ftpd_has_closed },
	{ "closed_unseen_connects_again_when_drained", kept_and_broken_unseen, connects_again, is_drained, NULL, only_ftpd_has_closed },
	{ "closed_unseen_is_drained_when_it_connects_again", kept_and_broken_unseen, is_drained, connects_again, NULL, only_ftpd_has_closed },
	{ "drained_closes_and_connects_again", kept, is_drained, breaks_and_connects_again, NULL, only_ftpd_has_closed },
	{ "closes_and_connects_again_when_drained", kept, breaks_and_connects_again, is_drained, NULL, only_ftpd_has_closed },
	{ "closed_unseen_and_disconnected_connects_again", drained_broken_unseen_and_disconnected, connects_again, is_drained, NULL, only_ftpd_has_closed_and_has_sent },
	{ "drained_disconnected_connects_again", drained_broken_unseen_and_disconnected, is_drained, connects_again, NULL, only_ftpd_has_closed_and_has_sent },
	{ "accepted_unseen_closes", accepted_unseen, breaks, is_drained, is_freed, it_ended_once },
	{ "accepted_unseen_is_freed", accepted_unseen, breaks_unseen_and_is_freed, is_drained, NULL, it_ended_once },
	{ "answered_unseen_is_drained", answered_unseen, is_drained, is_drained, breaks, only_ftpd_has_closed },
	{ "answered_unseen_is_drained_and_closes", answered_unseen, is_drained, breaks_and_is_freed, NULL, only_ftpd_has_closed },
	{ "answered_unseen_closes", answered_unseen, breaks, is_drained, is_freed, only_ftpd_has_closed },
	{ "answered_unseen_is_freed", answered_unseen, breaks_unseen_and_is_freed, is_drained, NULL, only_ftpd_has_closed },
	{ "answered_unseen_begins_to_close", answered_unseen, is_closed, nothing_happens, NULL, ftpd_has_opened_one },
	{ "answered_unseen_begins_to_close_when_drained", answered_unseen, is_closed, is_drained, breaks_and_is_freed, only_ftpd_has_closed },
	{ "accepted_unseen_begins_to_close", accepted_unseen, is_closed, is_drained, breaks, only_ftpd_has_closed },
	{ "refused_is_freed", connecting_seen, breaks_and_is_freed, is_drained, NULL, ftpd_has_failed_once },
	{ "refused_unseen_is_freed", connecting_seen, breaks_unseen_and_is_freed, is_drained, NULL, ftpd_has_failed_once },
};

static void reset(void)
{
	element_count = 0;
	record = NULL;
	record_count = 0;
	memset(records, 0, sizeof(records));
	memset(&tcp_sock, 0, sizeof(tcp_sock));
	sock = (struct sock){
		.__sk_common = { .skc_family = AF_INET, .skc_daddr = 1, .skc_rcv_saddr = 2,
				 .skc_dport = 0x5000, .skc_num = 40000, .skc_net.net = &net },
		.sk_protocol = IPPROTO_TCP,
		.sk_cgrp_data.cgroup = &group,
	};
	current = &inetd;
	tracer = 300;
}

/* Whether the edges are right if the first CPU stops before two steps, and the second before one. */
static bool is_right_at(const struct race *race, unsigned stop, unsigned other, unsigned again)
{
	reset();
	race->before();
	begin(&cpus[0], race->first);
	begin(&cpus[1], race->second);
	resume(&cpus[0], stop);
	resume(&cpus[1], other);
	resume(&cpus[0], again);
	resume(&cpus[1], NEVER);
	resume(&cpus[0], NEVER);
	if (race->last)
		race->last();
	if (race->is_right())
		return true;
	printf("%s: wrong if the first stops before its steps %u and %u, the second before %u\n",
	       race->name, stop, again, other);
	return false;
}

static bool is_always_right(const struct race *race)
{
	for (unsigned stop = 0;; stop++) {
		for (unsigned other = 0;; other++) {
			for (unsigned again = stop + 1;; again++) {
				if (!is_right_at(race, stop, other, again))
					return false;
				/* It had fewer steps. */
				if (cpus[0].step <= again || cpus[1].step <= other)
					break;
			}
			if (cpus[1].step <= other)
				break;
		}
		if (cpus[0].step <= stop)
			return true;
	}
}

int main(int count, char **words)
{
	bool is_right = true;

	for (unsigned at = 0; at < sizeof(races) / sizeof(*races); at++)
		if (count < 2 || !strcmp(words[1], races[at].name))
			is_right &= is_always_right(&races[at]);
	return is_right ? 0 : 1;
}
