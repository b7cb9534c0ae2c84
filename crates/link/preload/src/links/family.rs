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

/// The hidden descriptor of the file, 0 if there is no family yet.
static FILE: AtomicI32 = AtomicI32::new(0);
/// This process: its number, the hidden descriptor that has its lock, and its number for the kernel.
/// In a child that was not announced, all three are still its parent's.
static OWN: AtomicU64 = AtomicU64::new(0);
static LOCKED: AtomicI32 = AtomicI32::new(0);
static PROCESS: AtomicU32 = AtomicU32::new(0);

/// Microseconds between two looks.
const SELDOM: u64 = 2000;

/// A process that is about to be forked: its number, and the hidden descriptor that has its lock.
#[derive(Clone, Copy)]
pub struct Birth {
    pub number: u64,
    pub fd: c_int,
}

/// The number of this process, 0 if it has none.
pub fn own() -> u64 {
    if is_here() { OWN.load(Acquire) } else { 0 }
}

/// Whether this process has a number.
pub fn is_here() -> bool {
    PROCESS.load(Acquire) == state::process_number()
}

/// This process, and its forks so far.
pub fn present() -> u64 {
    u64::from(state::process_number()) << 32 | u64::from(state::forks())
}

/// Whether another process may have this end of a link; its maker is the process with this number.
pub fn have(holders: Option<&Holders>, maker: u32) -> bool {
    // A child that was not announced shares what its parent has.
    let is_known = is_here() || maker == state::process_number();
    !is_known || holders.is_none_or(|holders| holders.has_others(own(), lives))
}

/// Whether the last look was some time ago; this is one.
pub fn is_time_to_look(looked: &AtomicU64) -> bool {
    let now = ticks();
    let is_time = now.wrapping_sub(looked.load(Relaxed)) >= SELDOM * ticks_per_microsecond();
    if is_time {
        looked.store(now, Relaxed);
    }
    is_time
}

/// Whether a process lives, and has not started another program.
pub fn lives(number: u64) -> bool {
    any_in(number, 1)
}

/// Whether any other process of the family lives.
pub fn others_live() -> bool {
    let own = own();
    any_in(0, own) || any_in(own + 1, 0)
}

/// Whether there is a lock on any of these bytes; a length of 0 is all from `start` on.
fn any_in(start: u64, length: u64) -> bool {
    let file = FILE.load(Acquire);
    if file == 0 || (start == 0 && length == 0) {
        return false;
    }
    let mut lock = flock(start, length);
    let asked = syscall::fcntl(file, libc::F_OFD_GETLK, (&raw mut lock).addr());
    match asked {
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
pub fn announce() -> Option<Birth> {
    if !is_here() || OWN.load(Acquire) == 0 {
        found()?;
        let own = new_member()?;
        // A signal handler or another thread may have been faster.
        let before = if is_here() { 0 } else { OWN.load(Acquire) };
        if OWN.compare_exchange(before, own.number, AcqRel, Relaxed).is_ok() {
            LOCKED.store(own.fd, Release);
            PROCESS.store(state::process_number(), Release);
        } else {
            reserved_descriptors::close(own.fd);
        }
    }
    new_member()
}

fn found() -> Option<()> {
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
fn new_member() -> Option<Birth> {
    let mut path = Path::new();
    write!(path, "/proc/self/fd/{}", FILE.load(Acquire)).ok()?;
    // Of its own: copies of another descriptor would have its locks.
    let fd = syscall::open(path.text()?, libc::O_RDWR).ok()?;
    let fd = reserved_descriptors::hide(fd)?;
    let mut number = syscall::clock(libc::CLOCK_MONOTONIC).unwrap_or(0).max(1);
    loop {
        let lock = flock(number, 1);
        match syscall::fcntl(fd, libc::F_OFD_SETLK, (&raw const lock).addr()) {
            Ok(_) => return Some(Birth { number, fd }),
            Err(syscall::Errno(libc::EAGAIN)) => number += 1,
            Err(_) => {
                reserved_descriptors::close(fd);
                return None;
            }
        }
    }
}

/// In the child of a fork: it is the one that was announced, or has no number.
pub fn begin(birth: Option<Birth>) {
    // As long as a process has this, the parent would seem to live.
    reserved_descriptors::close(LOCKED.swap(0, AcqRel));
    let Birth { number, fd } = birth.unwrap_or(Birth { number: 0, fd: 0 });
    OWN.store(number, Release);
    LOCKED.store(fd, Release);
    PROCESS.store(if number == 0 { 0 } else { state::process_number() }, Release);
}

/// In the parent: the child alone has its lock.
pub fn has_begun(birth: Birth) {
    reserved_descriptors::close(birth.fd);
}
