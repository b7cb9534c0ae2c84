/* SPDX-License-Identifier: Apache-2.0 */
/* The structures of this test have all fields, and no field is a part of a byte. */
#define bpf_core_field_exists(field) 1
#define BPF_CORE_READ_BITFIELD(structure, field) ((structure)->field)
