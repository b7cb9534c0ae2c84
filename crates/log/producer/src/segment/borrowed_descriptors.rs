// SPDX-License-Identifier: Apache-2.0
//! Descriptors that the collector lends. Programs close and reuse descriptors that they know
//! nothing of, so each is looked at before it is used.

use crate::program::settings;
use crate::program::threads::hold;
use crate::segment::handover;
use crate::segment::region::{Region, Slot};
use core::ffi::c_int;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use tare_log_segment::Identity;
use tare_shm::syscall;

/// The descriptor in `slot`, if it is that of `what`, else a new one from the collector; with how
/// long the file is. The old one stays open: another thread may be about to write through it, and
/// its number must not become another file's.
pub fn get(region: &Region, slot: &Slot, what: Identity) -> Option<(c_int, u64)> {
    check(slot, what).or_else(|| {
        if now().wrapping_sub(region.borrow_next.load(Relaxed)) as i32 <= 0
            || !hold(&region.borrower, syscall::gettid())
        {
            return None;
        }
        // Another thread may have got it meanwhile.
        let lent = check(slot, what).or_else(|| {
            let path = settings::socket()?;
            match handover::borrow(&path, what) {
                Ok(fd) => slot.store(fd, Release),
                Err(_) => region.borrow_next.store(now(), Relaxed),
            }
            check(slot, what)
        });
        region.borrower.store(0, Release);
        lent
    })
}

#[inline(never)]
fn check(slot: &Slot, what: Identity) -> Option<(c_int, u64)> {
    let fd = slot.load(Acquire);
    if fd == 0 {
        return None;
    }
    let status = syscall::fstat(fd).ok()?;
    let is = Identity { device: status.st_dev, inode: status.st_ino };
    (is == what).then_some((fd, status.st_size as u64))
}

/// In seconds.
fn now() -> u32 {
    (syscall::clock(libc::CLOCK_MONOTONIC).unwrap_or(0) / 1_000_000_000) as u32
}
