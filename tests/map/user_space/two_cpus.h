/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel as the programs see it: maps, one connection, two programs, and two CPUs of which each runs
 * from one of its steps to another. A call of the kernel's is a step. Include it behind map.bpf.c. */
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

/* ---- The kernel ---- */

struct element {
	void *map;
	unsigned char key[80];
	unsigned char value[256];
};

static struct element elements[64];
static unsigned element_count;
/* One after the other: a program can still have a record that another one has removed. */
static struct connection records[4], *record;
static unsigned record_count;
static struct sock sock;
static struct tcp_sock tcp_sock;
static struct socket sock_of_file = { .sk = &sock };
static struct net net = { .ipv4.ip_local_ports.range = 60999u << 16 | 32768 };
static struct kernfs_node node = { .id = 7 };
static struct cgroup group = { .kn = &node };
static struct task_struct *current;

static struct super_block disk = { .s_dev = 1 };
static struct inode inodes[2] = { { 11, &disk }, { 22, &disk } };
static struct dentry names[2] = { { { .name = (void *)"inetd" }, &inodes[0] }, { { .name = (void *)"ftpd" }, &inodes[1] } };
static struct file executables[2] = { { { &names[0] } }, { { &names[1] } } };
static struct mm_struct memories[2] = { { &executables[0] }, { &executables[1] } };
static struct task_struct inetd = { 100, 100, &memories[0] }, ftpd = { 200, 200, &memories[1] };

/* ---- Two CPUs ---- */

#define NEVER ~0u

static struct cpu {
	void (*program)(void);
	unsigned step, stop;	/* before which step it stops */
	bool is_over;
	struct task_struct *task;
	jmp_buf place;
	char stack[1 << 16];
} cpus[2], *running;

static jmp_buf scheduler;

void step(void)
{
	if (!running || running->step++ != running->stop)
		return;
	if (!_setjmp(running->place))
		_longjmp(scheduler, 1);
}

/* Runs the programs that a CPU gets, one after the other. */
static void run_programs(void)
{
	for (;;) {
		running->program();
		running->is_over = true;
		if (!_setjmp(running->place))
			_longjmp(scheduler, 1);
	}
}

static void begin(struct cpu *cpu, void (*program)(void))
{
	cpu->program = program;
	cpu->step = 0;
	cpu->is_over = false;
	cpu->task = current;
}

/* Lets a CPU go on until it is before a step. */
static void resume(struct cpu *cpu, unsigned stop)
{
	static bool has_stack[2];
	struct task_struct *task = current;

	if (cpu->is_over)
		return;
	cpu->stop = stop;
	running = cpu;
	current = cpu->task;
	if (!_setjmp(scheduler)) {
		if (has_stack[cpu - cpus])
			_longjmp(cpu->place, 1);
		has_stack[cpu - cpus] = true;
		ucontext_t context;
		getcontext(&context);
		context.uc_stack.ss_sp = cpu->stack;
		context.uc_stack.ss_size = sizeof(cpu->stack);
		makecontext(&context, run_programs, 0);
		setcontext(&context);
	}
	running->task = current;
	running = NULL;
	current = task;
}

static unsigned size_of_key(void *map)
{
	return map == &edges || map == &second_edges ? sizeof(struct edge_key) :
	       map == &errors || map == &second_errors ? sizeof(struct error_key) :
	       map == &programs ? sizeof(struct program_key) :
	       map == &listeners ? sizeof(struct listener_key) : sizeof(u32);
}

static unsigned size_of_value(void *map)
{
	return map == &edges || map == &second_edges ? sizeof(struct edge_counts) :
	       map == &programs ? sizeof(struct program_name) :
	       map == &listeners ? sizeof(u32) : sizeof(u64);
}

static void *find(void *map, const void *key)
{
	for (unsigned at = 0; at < element_count; at++)
		if (elements[at].map == map && !memcmp(elements[at].key, key, size_of_key(map)))
			return elements[at].value;
	return NULL;
}

void *bpf_map_lookup_elem(void *map, const void *key)
{
	step();
	return find(map, key);
}

long bpf_map_update_elem(void *map, const void *key, const void *value, unsigned long long flags)
{
	void *place;

	step();
	place = find(map, key);
	if (place && flags == BPF_NOEXIST)
		return -1;
	if (!place) {
		if (element_count == 64)
			abort();
		elements[element_count].map = map;
		memcpy(elements[element_count].key, key, size_of_key(map));
		place = elements[element_count++].value;
	}
	memcpy(place, value, size_of_value(map));
	return 0;
}

static void create_record(void)
{
	if (record_count == sizeof(records) / sizeof(*records))
		abort();
	record = &records[record_count++];
}

void *bpf_sk_storage_get(void *map, void *sk, void *value, unsigned long long flags)
{
	step();
	if (!record && flags)
		create_record();
	return record;
}

long bpf_sk_storage_delete(void *map, void *sk)
{
	step();
	if (!record)
		return -1;
	record = NULL;
	return 0;
}

long bpf_map_delete_elem(void *map, const void *key) { abort(); }
void *bpf_ringbuf_reserve(void *map, unsigned long long size, unsigned long long flags) { abort(); }
void bpf_ringbuf_submit(void *data, unsigned long long flags) { abort(); }
unsigned long long bpf_ktime_get_ns(void) { return 1; }
unsigned long long bpf_jiffies64(void) { return 1; }
unsigned long long bpf_get_current_pid_tgid(void) { return (u64)current->tgid << 32 | current->pid; }
unsigned long long bpf_get_socket_cookie(void *context) { return 1; }
void *bpf_get_current_task_btf(void) { return current; }
void *bpf_skc_to_tcp_sock(void *sk) { return &tcp_sock; }
void *bpf_sock_from_file(struct file *file) { return &sock_of_file; }

long bpf_probe_read_kernel_str(void *to, unsigned size, const void *from)
{
	return snprintf(to, size, "%s", (const char *)from);
}
