// SPDX-License-Identifier: Apache-2.0
//! Descriptors of the library itself, and the open ones of the process.

mod high_descriptors;
pub mod io_uring_detection;
pub mod open_descriptors;
pub mod reserved_descriptors;
#[cfg(test)]
pub mod test_lock;
