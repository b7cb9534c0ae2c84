// SPDX-License-Identifier: Apache-2.0
//! Edges that programs in the kernel count.

pub mod bpf_calls;
pub mod connections;
pub mod double_buffer;
pub mod eviction;
pub mod losses;
pub mod maps;
pub mod options;
pub mod programs;
pub mod tracer;
pub mod unseen_ends;
pub mod user_space_counts;
