// SPDX-License-Identifier: Apache-2.0
//! What the program takes away from itself, and so from the library: system calls (seccomp), the
//! tick counter. The library prepares for it before the program's call is made.

use crate::record::hook::{DESCRIPTORS, Hook};
use crate::record::shrink::shrink;
use crate::thread::Thread;
use core::ffi::c_long;
use tare_clock::{Rate, Snapshot, counter};
use tare_interpose::Restriction;
use tare_shm::{memory, syscall};

pub fn observe(number: c_long, first: usize, second: usize, third: usize) {
    let restriction = Restriction::of(number, first, second, third);
    // A child that has its parent's memory restricts itself alone.
    if restriction.is_none() || Thread::get().is_of_another_process() {
        return;
    }
    match restriction {
        Some(Restriction::SystemCalls) => forbid_system_calls(),
        Some(Restriction::TickCounter) => replace_counter(),
        Some(Restriction::All) => {
            replace_counter();
            forbid_system_calls();
        }
        Some(Restriction::Memory(Some(limit))) if memory::leaves_room_under(limit) => {}
        Some(Restriction::Memory(_)) => shrink(),
        None => {}
    }
}

/// Asks the kernel for the last time: which ring is this thread's, what the open descriptors are.
fn forbid_system_calls() {
    if let Some(hook) = Hook::get() {
        hook.claim_ring();
        DESCRIPTORS.look_up_all();
    }
    counter::monotonic();
    syscall::forbid();
}

/// Ticks are computed at the rate that they had since tare-hook began.
fn replace_counter() {
    let now = Snapshot::take();
    let rate = Hook::get().and_then(|hook| Rate::between(&hook.shared.beginning(), &now));
    counter::replace(&now, rate.unwrap_or(Rate::NANOSECOND));
}
