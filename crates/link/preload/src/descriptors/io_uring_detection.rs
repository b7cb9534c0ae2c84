// SPDX-License-Identifier: Apache-2.0
//! Whether the program has an io_uring, which it can get by raw system calls: it moves bytes of
//! connections without a call that the library sees.

use crate::descriptors::open_descriptors;
use core::ffi::{CStr, c_int};
use core::sync::atomic::Ordering::Relaxed;
use core::sync::atomic::{AtomicBool, AtomicU64};
use tare_shm::syscall::{self, call};

const NAME: &[u8] = b"anon_inode:[io_uring]";
/// What part of the time looks take at most.
const SHARE: u64 = 50;
const SECOND: u64 = 1_000_000_000;
/// Descriptors that are looked at.
const MOST: u32 = 4096;

static IS_FOUND: AtomicBool = AtomicBool::new(false);
/// When the next look is due, in nanoseconds.
static DUE: AtomicU64 = AtomicU64::new(0);

/// As of the last look: some milliseconds ago, more if the program has many descriptors.
pub fn is_used() -> bool {
    let (now, due) = (now(), DUE.load(Relaxed));
    // Should the thread not end its look, since this is the child of a fork, another one does.
    let later = now.saturating_add(SECOND);
    if now >= due && DUE.compare_exchange(due, later, Relaxed, Relaxed).is_ok() {
        IS_FOUND.store(open_descriptors::any(MOST, is_ring), Relaxed);
        let end = self::now();
        DUE.store(end.saturating_add(SHARE * end.saturating_sub(now)), Relaxed);
    }
    IS_FOUND.load(Relaxed)
}

fn now() -> u64 {
    syscall::clock(libc::CLOCK_MONOTONIC).unwrap_or(0)
}

fn is_ring(folder: c_int, name: &CStr) -> bool {
    let mut target = [0u8; NAME.len()];
    let place = target.as_mut_ptr().addr();
    let arguments = [folder as usize, name.as_ptr().addr(), place, target.len(), 0, 0];
    // SAFETY: the kernel writes at most this number of bytes.
    let read = unsafe { call(libc::SYS_readlinkat, arguments) };
    read == Ok(NAME.len()) && target == NAME
}
