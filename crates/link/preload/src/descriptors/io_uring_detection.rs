// SPDX-License-Identifier: Apache-2.0
//! Whether the program has an io_uring, which it can get by raw system calls: it moves bytes of
//! connections without a call that the library sees.

use crate::descriptors::open_descriptors;
use crate::kernel;
use core::ffi::{CStr, c_int};
use core::sync::atomic::Ordering::Relaxed;
use core::sync::atomic::{AtomicBool, AtomicI64};
use tare_shm::syscall::call;

const NAME: &[u8] = b"anon_inode:[io_uring]";
/// Milliseconds between two looks.
const OFTEN: i64 = 1000;
/// Descriptors that are looked at.
const MOST: u32 = 4096;

static IS_FOUND: AtomicBool = AtomicBool::new(false);
static LOOKED: AtomicI64 = AtomicI64::new(i64::MIN);

/// As of the last second.
pub fn is_used() -> bool {
    let now = kernel::now();
    let looked = LOOKED.load(Relaxed);
    if now.saturating_sub(looked) >= OFTEN
        && LOOKED.compare_exchange(looked, now, Relaxed, Relaxed).is_ok()
    {
        IS_FOUND.store(open_descriptors::any(MOST, is_ring), Relaxed);
    }
    IS_FOUND.load(Relaxed)
}

fn is_ring(folder: c_int, name: &CStr) -> bool {
    let mut target = [0u8; NAME.len()];
    let place = target.as_mut_ptr().addr();
    let arguments = [folder as usize, name.as_ptr().addr(), place, target.len(), 0, 0];
    // SAFETY: the kernel writes at most this number of bytes.
    let read = unsafe { call(libc::SYS_readlinkat, arguments) };
    read == Ok(NAME.len()) && target == NAME
}
