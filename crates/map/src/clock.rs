// SPDX-License-Identifier: Apache-2.0
//! The clocks of the kernel and of this process.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// CPU time of this process.
pub fn process_seconds() -> f64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the structure is valid for the call, which cannot fail for this clock.
    unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &mut time) };
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

/// Relates the kernel's monotonic clock to the time of day.
pub struct Clock {
    epoch_at_boot_ns: i64,
}

impl Clock {
    pub fn now() -> Self {
        let mut monotonic = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: the structure is valid for the call, which cannot fail for this clock.
        unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut monotonic) };
        let monotonic = Duration::new(monotonic.tv_sec as u64, monotonic.tv_nsec as u32);
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self { epoch_at_boot_ns: now.as_nanos() as i64 - monotonic.as_nanos() as i64 }
    }

    pub fn since_epoch(&self, monotonic_ns: u64) -> i64 {
        self.epoch_at_boot_ns + monotonic_ns as i64
    }
}
