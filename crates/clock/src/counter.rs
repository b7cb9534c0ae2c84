// SPDX-License-Identifier: Apache-2.0
//! Whether the program may read the tick counter (PR_SET_TSC of prctl(2)); where it may not, ticks
//! are computed from the kernel's clock: the instruction would end the program.

use crate::{Rate, Snapshot};
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use core::sync::atomic::{AtomicBool, AtomicU64};
use tare_shm::syscall;

static IS_REPLACED: AtomicBool = AtomicBool::new(false);
/// Ticks and time from which later ticks are computed, and the length of a tick.
static FIRST_TICKS: AtomicU64 = AtomicU64::new(0);
static FIRST_NS: AtomicU64 = AtomicU64::new(0);
static RATE: AtomicU64 = AtomicU64::new(0);
static LATEST_NS: AtomicU64 = AtomicU64::new(0);

/// Whether the calling thread may read the counter. A kernel without the call has no way to
/// forbid it.
pub fn is_readable() -> bool {
    let mut may_read = libc::PR_TSC_ENABLE;
    let arguments = [libc::PR_GET_TSC as usize, (&raw mut may_read).addr(), 0, 0, 0, 0];
    // SAFETY: the kernel writes one integer.
    let _ = unsafe { syscall::call(libc::SYS_prctl, arguments) };
    may_read == libc::PR_TSC_ENABLE
}

/// From now on ticks are computed, by the clock since `first` and the length of a tick, in all
/// threads and for good: threads inherit the ban from the thread that starts them. `first` was
/// taken in this boot of the machine.
pub fn replace(first: &Snapshot, rate: Rate) {
    if IS_REPLACED.load(Relaxed) {
        return;
    }
    FIRST_TICKS.store(first.ticks, Relaxed);
    RATE.store(rate.to_bits(), Relaxed);
    // `first` has no time where system calls are forbidden.
    let first_ns = first.monotonic_ns as u64;
    FIRST_NS.store(LATEST_NS.fetch_max(first_ns, Relaxed).max(first_ns), Relaxed);
    IS_REPLACED.store(true, Release);
}

#[inline(always)]
pub fn is_replaced() -> bool {
    IS_REPLACED.load(Acquire)
}

/// Ticks without the counter.
#[cold]
pub fn computed_ticks() -> u64 {
    let passed = monotonic().saturating_sub(FIRST_NS.load(Relaxed));
    let ticks = Rate::from_bits(RATE.load(Relaxed)).map_or(0, |rate| rate.ticks(passed));
    FIRST_TICKS.load(Relaxed).wrapping_add(ticks)
}

/// CLOCK_MONOTONIC_RAW by the system call; the latest known time where that is forbidden.
#[cold]
pub fn monotonic() -> u64 {
    let now = syscall::clock(libc::CLOCK_MONOTONIC_RAW).unwrap_or(0);
    LATEST_NS.fetch_max(now, Relaxed).max(now)
}
