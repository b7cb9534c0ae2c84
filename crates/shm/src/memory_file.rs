// SPDX-License-Identifier: Apache-2.0
//! What distinguishes a segment from other files.

use crate::syscall::{self, Errno};
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Mode of every segment.
pub(crate) const MODE: u32 = 0o644;

/// The device of memfds, which the kernel has but one of; 0 as long as nobody has asked.
static MEMORY_DEVICE: AtomicU64 = AtomicU64::new(0);

/// The device of the file system of memfds, as `fstat` says it.
pub(crate) fn memory_device() -> Result<u64, Errno> {
    let known = MEMORY_DEVICE.load(Relaxed);
    if known != 0 {
        return Ok(known);
    }
    let own = syscall::memfd_create(c"tare", libc::MFD_CLOEXEC)?;
    let status = syscall::fstat(own);
    syscall::close(own);
    let device = status?.st_dev;
    MEMORY_DEVICE.store(device, Relaxed);
    Ok(device)
}
