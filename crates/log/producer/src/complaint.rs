// SPDX-License-Identifier: Apache-2.0
//! What the user is told on stderr, where he names a collector.

use crate::settings;
use core::sync::atomic::AtomicBool;
use core::sync::atomic::Ordering::Relaxed;
use tare_shm::syscall::{self, Errno};

/// Said once; the child of a fork does not say it again.
pub struct Complaint {
    text: &'static str,
    is_said: AtomicBool,
}

pub static FILES: Complaint =
    Complaint::new("tare-log: no events are kept: they need a larger limit of files (ulimit -f)\n");
static MEMORY: Complaint =
    Complaint::new("tare-log: no events are kept: they need more memory (ulimit -v)\n");
static DESCRIPTORS: Complaint = Complaint::new(
    "tare-log: no events reach the collector: they need more descriptors (ulimit -n)\n",
);
pub static CHANNELS: Complaint = Complaint::new(
    "tare-log: no room for more channels (16,383, with names of 4 MiB): their events have no name or are discarded\n",
);
pub static RING: Complaint = Complaint::new(
    "tare-log: TARE_LOG_RING is not understood, rings have 4M: expected bytes, as 65536, 512K, 4M or 1G\n",
);
pub static CLOCK: Complaint = Complaint::new(
    "tare-log: TARE_LOG_CLOCK is not understood, times are of tsc: expected tsc, tscp or monotonic\n",
);

impl Complaint {
    const fn new(text: &'static str) -> Self {
        Self { text, is_said: AtomicBool::new(false) }
    }

    pub fn say(&self) {
        if settings::socket().is_none() || self.is_said.swap(true, Relaxed) {
            return;
        }
        let arguments = [2, self.text.as_ptr().addr(), self.text.len(), 0, 0, 0];
        // SAFETY: the kernel reads the text.
        let _ = unsafe { syscall::call(libc::SYS_write, arguments) };
    }
}

/// Says what the process has too little of, if that is why the system call failed.
pub fn lacking(why: Errno) {
    match why.0 {
        libc::ENOMEM => MEMORY.say(),
        libc::EMFILE | libc::ENFILE => DESCRIPTORS.say(),
        _ => {}
    }
}
