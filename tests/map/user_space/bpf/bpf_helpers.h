/* SPDX-License-Identifier: Apache-2.0 */
/* In place of libbpf's header: the programs of crates/map/bpf are functions of a test, and whatever
 * another CPU can see between is a step. */
#ifndef TEST_BPF_HELPERS_H
#define TEST_BPF_HELPERS_H

#include <stddef.h>

#define SEC(name)
#define __always_inline inline
#define __noinline
#define __uint(name, value) int (*name)[value]
#define __type(name, value) typeof(value) *name
#define BPF_SK_STORAGE_GET_F_CREATE 1

struct sock;
struct file;

void step(void);

#define __sync_fetch_and_add(...) (step(), __sync_fetch_and_add(__VA_ARGS__))
/* What follows such an operation is a step of its own. */
#define then_step(operation) ({ step(); typeof(operation) result = operation; step(); result; })
#define __sync_lock_test_and_set(...) then_step(__sync_lock_test_and_set(__VA_ARGS__))
#define __sync_val_compare_and_swap(...) then_step(__sync_val_compare_and_swap(__VA_ARGS__))

void *bpf_map_lookup_elem(void *map, const void *key);
long bpf_map_update_elem(void *map, const void *key, const void *value, unsigned long long flags);
long bpf_map_delete_elem(void *map, const void *key);
void *bpf_sk_storage_get(void *map, void *sk, void *value, unsigned long long flags);
long bpf_sk_storage_delete(void *map, void *sk);
void *bpf_ringbuf_reserve(void *map, unsigned long long size, unsigned long long flags);
void bpf_ringbuf_submit(void *data, unsigned long long flags);
unsigned long long bpf_ktime_get_ns(void);
unsigned long long bpf_jiffies64(void);
unsigned long long bpf_get_current_pid_tgid(void);
unsigned long long bpf_get_socket_cookie(void *context);
long bpf_probe_read_kernel_str(void *to, unsigned size, const void *from);
void *bpf_get_current_task_btf(void);
void *bpf_skc_to_tcp_sock(void *sk);
void *bpf_sock_from_file(struct file *file);

#endif
