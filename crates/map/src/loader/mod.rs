// SPDX-License-Identifier: Apache-2.0
//! Edges that programs in the kernel count.

pub mod calls;
pub mod connections;
pub mod losses;
pub mod maps;
pub mod options;
pub mod pair;
pub mod programs;
pub mod room;
pub mod tracer;
pub mod unseen;
pub mod user_space_counts;
