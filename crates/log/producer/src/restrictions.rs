// SPDX-License-Identifier: Apache-2.0
//! What the program takes away from itself, and so from the library: system calls (seccomp), the
//! tick counter. The library prepares for it before the program's call is made.

use crate::attach::{attach, attached};
use crate::carrier_thread::Carrier;
use crate::region::Region;
use crate::{clock, ring_ownership, settings};
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

/// It uses its parent's memory: it restricts itself, and does not make itself at home there.
pub fn is_vfork_child() -> bool {
    let is_another = |region: &Region| region.pid.load(Relaxed) != syscall::getpid();
    !syscall::are_forbidden() && Region::get().is_some_and(is_another)
}
