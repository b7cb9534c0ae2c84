// SPDX-License-Identifier: Apache-2.0
//! What the library knows of the process: its threads and connections, and the statistics.

pub mod connection;
pub mod lock;
pub mod thread;

use crate::state::connection::Connection;
use crate::state::thread::Thread;
use core::ffi::c_int;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32};
use tare_interpose::{Descriptors, Entry, Kind};
use tare_link_segment::{Counter, Reason, Reasons, Statistics};

pub static DESCRIPTORS: Descriptors<Connection> = Descriptors::new();
static STATISTICS: AtomicPtr<Statistics> = AtomicPtr::new(core::ptr::null_mut());
static IS_EAGER: AtomicBool = AtomicBool::new(false);
/// The program has forbidden itself system calls, or so will: no connection is linked any more.
static IS_OFF: AtomicBool = AtomicBool::new(false);
/// Forks so far: a connection of before is shared with a child.
static FORKS: AtomicU32 = AtomicU32::new(1);

pub fn start(statistics: &'static Statistics, eager: bool) {
    IS_EAGER.store(eager, Relaxed);
    statistics.add(thread_number(), Counter::Programs, 1);
    STATISTICS.store(core::ptr::from_ref(statistics).cast_mut(), Release);
}

/// `None` before the constructor, and where there is no tare-link.
#[inline]
pub fn statistics() -> Option<&'static Statistics> {
    // SAFETY: null, or set by `start` from a reference that lives for ever.
    unsafe { STATISTICS.load(Acquire).as_ref() }
}

pub fn count(counter: Counter, number: u64) {
    if let Some(statistics) = statistics() {
        statistics.add(thread_number(), counter, number);
    }
}

/// Counts why something happened.
pub fn count_reason(counted: fn(&Statistics) -> &Reasons, reason: Reason) {
    if let Some(statistics) = statistics() {
        counted(statistics).add(reason);
    }
}

pub fn is_eager() -> bool {
    IS_EAGER.load(Relaxed)
}

pub fn stop() {
    IS_OFF.store(true, Release);
}

pub fn is_off() -> bool {
    IS_OFF.load(Acquire)
}

pub fn forks() -> u32 {
    FORKS.load(Acquire)
}

pub fn forked() {
    FORKS.fetch_add(1, Release);
}

/// The connection of a TCP socket, if the library works and this is no child of vfork.
#[inline]
pub fn tracked(fd: c_int) -> Option<(&'static Connection, Entry)> {
    statistics()?;
    if Thread::get().is_borrowed() {
        return None;
    }
    let entry = DESCRIPTORS.look_up(fd);
    if entry.kind() != Kind::Tcp {
        return None;
    }
    Some((DESCRIPTORS.connection(entry)?, entry))
}

/// As `tracked`, of what is known already.
#[inline]
pub fn known(fd: c_int) -> Option<(&'static Connection, Entry)> {
    statistics()?;
    let entry = DESCRIPTORS.get(fd);
    if entry.kind() != Kind::Tcp {
        return None;
    }
    Some((DESCRIPTORS.connection(entry)?, entry))
}

/// The calling thread's number.
pub fn thread_number() -> u32 {
    Thread::get().identity().1
}

pub fn process_number() -> u32 {
    Thread::get().identity().0
}

/// Whether this is a child of vfork, or the library does not work.
pub fn is_child() -> bool {
    Thread::get().is_borrowed() || statistics().is_none()
}
