// SPDX-License-Identifier: Apache-2.0
//! Where the times of this process's events come from.

use crate::program::settings;
use core::sync::atomic::AtomicU64;
use core::sync::atomic::Ordering::Relaxed;
use tare_clock::{Rate, Snapshot, Source, counter};
use tare_log_segment::Process;
use tare_shm::syscall;

/// The rate when the kernel could be asked last; 0 is none.
static KEPT_RATE: AtomicU64 = AtomicU64::new(0);

/// What the user asked for, or what has to stand in for it on this machine and in this program.
pub fn choose() -> Source {
    if !counter::is_readable() {
        replace_counter();
    }
    if counter::is_replaced() {
        return Source::Fallback;
    }
    let mut list = [0; 256];
    settings::clock().or_fallback(listed(&mut list))
}

/// The kernel's list of its clock sources; `None` where it is not to be seen.
fn listed(list: &mut [u8]) -> Option<&[u8]> {
    const LIST: &core::ffi::CStr =
        c"/sys/devices/system/clocksource/clocksource0/available_clocksource";
    let fd = syscall::open(LIST, libc::O_RDONLY | libc::O_CLOEXEC).ok()?;
    let length = syscall::read(fd, list);
    syscall::close(fd);
    list.get(..length.ok()?)
}

pub fn source(process: &Process) -> Source {
    Source::numbered(process.clock.load(Relaxed))
}

/// For a process that has not begun to log: ticks are nanoseconds.
pub fn replace_counter() {
    let now = counter::monotonic();
    let now = Snapshot { ticks: now, monotonic_ns: now as i64, realtime_ns: 0, width: 0 };
    counter::replace(&now, Rate::NANOSECOND);
}

/// The rate of ticks since the process began to log.
pub fn rate(process: &Process) -> Option<Rate> {
    let first = Snapshot {
        ticks: process.first.ticks.load(Relaxed),
        monotonic_ns: process.first.monotonic_ns.load(Relaxed) as i64,
        realtime_ns: 0,
        width: 0,
    };
    let measured = Rate::between(&first, &Snapshot::take());
    measured.or_else(|| Rate::from_bits(KEPT_RATE.load(Relaxed)))
}

/// Keeps it for when the kernel cannot be asked.
pub fn keep_rate(process: &Process) {
    KEPT_RATE.store(rate(process).map_or(0, Rate::to_bits), Relaxed);
}

pub fn now(process: &Process) -> u64 {
    source(process).now()
}
