// SPDX-License-Identifier: Apache-2.0
//! What the log cost: the table `costs`, as every layer has it.

use super::event_counts::EventCounts;
use std::io;
use tare_tables::{COSTS, Cell, Vacant};

/// The columns of the table `costs` that are written.
pub const COLUMNS: &[&str] = &["layer", "metric", "count"];

/// Writes what was collected up to now, and the CPU time that took, as one Arrow stream.
pub fn write(programs: u64, counts: EventCounts, bytes: u64, file: Vacant) -> io::Result<()> {
    let mut writer = file.begin(&COSTS, COLUMNS)?;
    for (metric, count) in [
        ("programs_attached", programs),
        ("events", counts.events),
        ("events_lost", counts.lost + counts.unserved),
        ("bytes_written", bytes),
        ("collector_cpu_ns", cpu_ns()),
    ] {
        let count = Cell::Int(i64::try_from(count).unwrap_or(i64::MAX));
        writer.row(&[Cell::Text("log"), Cell::Text(metric), count])?;
    }
    writer.finish()
}

/// The CPU time of this process, all threads together.
fn cpu_ns() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the kernel writes a time; the clock is there on every Linux.
    unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}
