// SPDX-License-Identifier: Apache-2.0
//! Until when a call waits.

use core::ffi::c_int;
use libc::timespec;
use tare_shm::syscall;

const SECOND: u64 = 1_000_000_000;

/// Until when a wait lasts.
#[derive(Clone, Copy)]
pub struct Deadline(Option<u64>);

impl Deadline {
    pub fn after_milliseconds(timeout: c_int) -> Self {
        let after = u64::try_from(timeout).ok().map(|timeout| timeout * (SECOND / 1000));
        Self(after.map(|after| now().saturating_add(after)))
    }

    /// Null is for ever; `None` if the kernel should judge it.
    pub fn after(timeout: *const timespec) -> Option<Self> {
        if timeout.is_null() {
            return Some(Self(None));
        }
        // SAFETY: the program's own time.
        let time = unsafe { timeout.read() };
        let nanoseconds = u64::try_from(time.tv_nsec).ok().filter(|rest| *rest < SECOND)?;
        let seconds = u64::try_from(time.tv_sec).ok()?;
        let after = seconds.saturating_mul(SECOND).saturating_add(nanoseconds);
        Some(Self(Some(now().saturating_add(after))))
    }

    pub fn left(self) -> Option<timespec> {
        let left = self.0?.saturating_sub(now());
        Some(timespec { tv_sec: (left / SECOND) as i64, tv_nsec: (left % SECOND) as i64 })
    }

    pub fn is_never(self) -> bool {
        self.0.is_none()
    }

    /// Nanoseconds that are left of a wait with an end.
    pub fn rest(self) -> u64 {
        self.0.map_or(0, |end| end.saturating_sub(now()))
    }
}

fn now() -> u64 {
    syscall::clock(libc::CLOCK_MONOTONIC).unwrap_or(0)
}
