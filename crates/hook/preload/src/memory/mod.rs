// SPDX-License-Identifier: Apache-2.0
//! Bytes of the program, and copies of them.

pub mod buffers;
pub mod iovec_snapshot;
pub mod kernel_copy;
pub mod vectors;
