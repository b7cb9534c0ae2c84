// SPDX-License-Identifier: Apache-2.0
use crate::kernel;
use core::ffi::c_int;
use core::sync::atomic::AtomicU32;
use core::sync::atomic::Ordering::{AcqRel, Relaxed};

/// While TCP does not take the backlog, SO_LINGER is set to 0 seconds. This is what the program wants
/// meanwhile: 1 + its seconds, `NO` if it has not set the option, and 0 if there is no backlog.
#[derive(Debug)]
pub struct Guard(AtomicU32);

const NO: u32 = u32::MAX;

impl Guard {
    pub const fn new() -> Self {
        Self(AtomicU32::new(0))
    }

    pub fn clear(&self) {
        self.0.store(0, Relaxed);
    }

    pub fn begin(&self, fd: c_int) {
        if self.0.load(Relaxed) == 0 {
            let linger = kernel::linger(fd).and_then(|seconds| u32::try_from(seconds).ok());
            let value = linger.map_or(NO, |seconds| seconds.saturating_add(1).min(NO - 1));
            if self.0.compare_exchange(0, value, AcqRel, Relaxed).is_ok() {
                kernel::reset_at_close(fd);
            }
        }
    }

    /// The program has set the option anew.
    pub fn set(&self, fd: c_int, seconds: Option<c_int>) {
        let seconds = seconds.map(|seconds| u32::try_from(seconds).unwrap_or(0));
        let value = seconds.map_or(NO, |seconds| seconds.saturating_add(1).min(NO - 1));
        if self.0.load(Relaxed) != 0 {
            self.0.store(value, Relaxed);
            kernel::reset_at_close(fd);
        }
    }

    pub fn end(&self, fd: c_int) {
        match self.0.swap(0, AcqRel) {
            0 => {}
            NO => kernel::set_linger(fd, None),
            more => kernel::set_linger(fd, Some((more - 1) as c_int)),
        }
    }

    /// As `kernel::linger`.
    pub fn linger(&self, fd: c_int) -> Option<c_int> {
        match self.0.load(Relaxed) {
            0 => kernel::linger(fd),
            NO => None,
            more => Some((more - 1) as c_int),
        }
    }
}
