// SPDX-License-Identifier: Apache-2.0
use tare_shm::syscall;

/// Bytes of the largest file that this process may make.
pub fn largest_file() -> u64 {
    syscall::limit(libc::RLIMIT_FSIZE).unwrap_or(u64::MAX)
}
