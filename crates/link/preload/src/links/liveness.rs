// SPDX-License-Identifier: Apache-2.0
//! The processes that forks have made of one. Each has a number, which is also the place of a byte of
//! a file that all have open: the kernel has a lock on this byte as long as the process lives and has
//! not started another program, however it ends.

use crate::descriptors::reserved_descriptors;
use crate::links::busy_wait::{ticks, ticks_per_microsecond};
use crate::state;
use core::ffi::{c_int, c_short};
use core::fmt::Write;
use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use core::sync::atomic::{AtomicI32, AtomicU32, AtomicU64};
use tare_link_segment::Holders;
use tare_shm::{Path, syscall};

/// The hidden descriptor of the file, 0 before the first fork.
static FILE: AtomicI32 = AtomicI32::new(0);
/// This process: its number, the hidden descriptor that has its lock, and its number for the kernel.
/// In a child that `prepare_fork` did not expect, all three are still its parent's.
static OWN_NUMBER: AtomicU64 = AtomicU64::new(0);
static OWN_LOCK: AtomicI32 = AtomicI32::new(0);
static OWNER: AtomicU32 = AtomicU32::new(0);

/// Microseconds between two checks.
const CHECK_INTERVAL: u64 = 2000;

/// A process that is about to be forked: its number, and the hidden descriptor that has its lock.
#[derive(Clone, Copy)]
pub struct ProcessLock {
    pub number: u64,
    pub fd: c_int,
}

/// The number of this process, 0 if it has none.
pub fn own_number() -> u64 {
    if has_number() { OWN_NUMBER.load(Acquire) } else { 0 }
}

/// Whether this process has a number.
pub fn has_number() -> bool {
    OWNER.load(Acquire) == state::process_number()
}

/// This process, and its forks so far.
pub fn fork_generation() -> u64 {
    u64::from(state::process_number()) << 32 | u64::from(state::forks())
}

/// Whether another process may have this end of a link; its maker is the process with this number.
pub fn may_be_shared(holders: Option<&Holders>, maker: u32) -> bool {
    // A child that `prepare_fork` did not expect shares what its parent has.
    let is_known = has_number() || maker == state::process_number();
    !is_known || holders.is_none_or(|holders| holders.has_others(own_number(), is_alive))
}

/// Whether the last look was some time ago; this is one.
pub fn is_check_due(checked_at: &AtomicU64) -> bool {
    let now = ticks();
    let is_due =
        now.wrapping_sub(checked_at.load(Relaxed)) >= CHECK_INTERVAL * ticks_per_microsecond();
    if is_due {
        checked_at.store(now, Relaxed);
    }
    is_due
}

/// Whether a process lives, and has not started another program.
pub fn is_alive(number: u64) -> bool {
    is_any_locked(number, 1)
}

/// Whether any other process that forks have made lives.
pub fn others_are_alive() -> bool {
    let own = own_number();
    is_any_locked(0, own) || is_any_locked(own + 1, 0)
}

/// Whether there is a lock on any of these bytes; a length of 0 is all from `start` on.
fn is_any_locked(start: u64, length: u64) -> bool {
    let file = FILE.load(Acquire);
    if file == 0 || (start == 0 && length == 0) {
        return false;
    }
    let mut lock = flock(start, length);
    let result = syscall::fcntl(file, libc::F_OFD_GETLK, (&raw mut lock).addr());
    match result {
        Ok(_) => c_int::from(lock.l_type) != libc::F_UNLCK,
        // The kernel cannot be asked; else the number is none that a process can have.
        Err(_) => syscall::are_forbidden(),
    }
}

fn flock(start: u64, length: u64) -> libc::flock {
    libc::flock {
        l_type: libc::F_WRLCK as c_short,
        l_whence: libc::SEEK_SET as c_short,
        l_start: start as i64,
        l_len: length as i64,
        l_pid: 0,
    }
}

/// Gives this process a number, if it has none, and one to the process that it is about to fork.
pub fn prepare_fork() -> Option<ProcessLock> {
    if !has_number() || OWN_NUMBER.load(Acquire) == 0 {
        create_file()?;
        let own = lock_new_number()?;
        // A signal handler or another thread may have been faster.
        let before = if has_number() { 0 } else { OWN_NUMBER.load(Acquire) };
        if OWN_NUMBER.compare_exchange(before, own.number, AcqRel, Relaxed).is_ok() {
            OWN_LOCK.store(own.fd, Release);
            OWNER.store(state::process_number(), Release);
        } else {
            reserved_descriptors::close(own.fd);
        }
    }
    lock_new_number()
}

fn create_file() -> Option<()> {
    if FILE.load(Acquire) == 0 {
        let file = syscall::memfd_create(c"tare-link-family", libc::MFD_CLOEXEC).ok()?;
        let file = reserved_descriptors::hide(file)?;
        if FILE.compare_exchange(0, file, AcqRel, Relaxed).is_err() {
            reserved_descriptors::close(file);
        }
    }
    Some(())
}

/// A lock on a byte that no living process has: of the time, so none that has ended had it either.
fn lock_new_number() -> Option<ProcessLock> {
    let mut path = Path::new();
    write!(path, "/proc/self/fd/{}", FILE.load(Acquire)).ok()?;
    // Of its own: copies of another descriptor would have its locks.
    let fd = syscall::open(path.text()?, libc::O_RDWR).ok()?;
    let fd = reserved_descriptors::hide(fd)?;
    let mut number = syscall::clock(libc::CLOCK_MONOTONIC).unwrap_or(0).max(1);
    loop {
        let lock = flock(number, 1);
        match syscall::fcntl(fd, libc::F_OFD_SETLK, (&raw const lock).addr()) {
            Ok(_) => return Some(ProcessLock { number, fd }),
            Err(syscall::Errno(libc::EAGAIN)) => number += 1,
            Err(_) => {
                reserved_descriptors::close(fd);
                return None;
            }
        }
    }
}

/// In the child of a fork: it is the one that `prepare_fork` expected, or has no number.
pub fn after_fork_in_child(lock: Option<ProcessLock>) {
    // As long as a process has this, the parent would seem to live.
    reserved_descriptors::close(OWN_LOCK.swap(0, AcqRel));
    let ProcessLock { number, fd } = lock.unwrap_or(ProcessLock { number: 0, fd: 0 });
    OWN_NUMBER.store(number, Release);
    OWN_LOCK.store(fd, Release);
    OWNER.store(if number == 0 { 0 } else { state::process_number() }, Release);
}

/// In the parent: the child alone has its lock.
pub fn after_fork_in_parent(lock: ProcessLock) {
    reserved_descriptors::close(lock.fd);
}
