/* SPDX-License-Identifier: Apache-2.0 */
#define BPF_PROG(name, ...) name(__VA_ARGS__)
