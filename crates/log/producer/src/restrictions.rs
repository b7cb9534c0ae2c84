// SPDX-License-Identifier: Apache-2.0
//! What the program takes away from itself, and so from the library: system calls (seccomp), the
//! tick counter. The library prepares for it before the program's call is made.

use crate::program::{clock, settings};
use crate::segment::attach::attach;
use crate::segment::carrier_thread::Carrier;
use crate::segment::mapped::attached;
use crate::segment::region::is_vfork_child;
use crate::segment::ring_ownership;
use core::sync::atomic::Ordering::Relaxed;
use tare_clock::{Rate, Snapshot, counter};
use tare_shm::syscall;

/// The library makes no system call from now on. This thread gets a ring before, if events are
/// kept; a thread that has none by now stays without.
pub fn forbid_system_calls() {
    if is_vfork_child() {
        return;
    }
    if settings::socket().is_some() {
        attach();
    }
    if let Some((region, process)) = attached() {
        if process.is_on.load(Relaxed) != 0 {
            ring_ownership::writer(region, process);
        }
        clock::keep_rate(process);
    }
    counter::monotonic();
    syscall::forbid();
}

/// Ticks are computed at the rate that they have had since the process began to log. This thread
/// no longer takes the fast path, which reads the counter. Nor do those that begin later.
pub fn replace_counter() {
    if is_vfork_child() {
        return;
    }
    let Some((region, process)) = attached() else { return clock::replace_counter() };
    let now = Snapshot::take();
    counter::replace(&now, clock::rate(process).unwrap_or(Rate::NANOSECOND));
    if let Some(writer) = Carrier::this().writer() {
        writer.use_modes(region.out_of_line());
    }
}
