// SPDX-License-Identifier: Apache-2.0
//! What the user is told on stderr, where he names a collector.

use crate::program::settings;
use core::sync::atomic::Ordering::Relaxed;
use core::sync::atomic::{AtomicBool, AtomicU64};
use tare_log_segment::Identity;
use tare_shm::syscall::{self, Errno, with_signals_blocked};

const STDERR: i32 = 2;

/// What a thread gets that writes into a pipe that nobody reads, into a file at its limit, or to
/// a terminal from the background.
const OF_WRITES: u64 =
    1 << (libc::SIGPIPE - 1) | 1 << (libc::SIGXFSZ - 1) | 1 << (libc::SIGTTOU - 1);

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
    "tare-log: no room for more channels (16,383, with names of 4 MiB): their events are \
     discarded\n",
);
pub static SOCKET: Complaint =
    Complaint::new("tare-log: TARE_LOG is not used: the path of a socket has at most 107 bytes\n");
pub static STRANGER: Complaint = Complaint::new(
    "tare-log: no events are sent: the collector runs as another user (expected this user or \
     root). In a user namespace, set TARE_LOG_UID to the collector's user ID.\n",
);
pub static USER: Complaint =
    Complaint::new("tare-log: TARE_LOG_UID is ignored: expected a user ID, such as 1000\n");
pub static RING: Complaint = Complaint::new(
    "tare-log: TARE_LOG_RING is not understood, rings have 4M: expected bytes, as 65536, 512K, \
     4M or 1G\n",
);
pub static CLOCK: Complaint = Complaint::new(
    "tare-log: TARE_LOG_CLOCK is not understood, times are of tsc: expected tsc, tscp or \
     monotonic\n",
);

impl Complaint {
    const fn new(text: &'static str) -> Self {
        Self { text, is_said: AtomicBool::new(false) }
    }

    /// Only where a collector is named: else nobody asked for events.
    pub fn say(&self) {
        if settings::socket().is_some() {
            self.say_to_anyone();
        }
    }

    /// Also where the collector's name is what is wrong.
    pub fn say_to_anyone(&self) {
        if self.is_said.swap(true, Relaxed) || !is_still_stderr() || !is_writable() {
            return;
        }
        let _ = with_signals_blocked(OF_WRITES, || {
            let before = pending();
            let arguments = [STDERR as usize, self.text.as_ptr().addr(), self.text.len(), 0, 0, 0];
            // SAFETY: the kernel reads the text.
            let _ = unsafe { syscall::call(libc::SYS_write, arguments) };
            take(OF_WRITES & !before);
        });
    }
}

/// Which file stderr is when the program starts.
static FILE: [AtomicU64; 2] = [const { AtomicU64::new(0) }; 2];

/// For the start of the program: what it opens later in the place of stderr is its own.
pub fn note_stderr() {
    if let Ok(Identity { device, inode }) = Identity::of(STDERR) {
        FILE[0].store(inode, Relaxed);
        FILE[1].store(device, Relaxed);
    }
}

fn is_still_stderr() -> bool {
    let [inode, device] = FILE.each_ref().map(|half| half.load(Relaxed));
    Identity::of(STDERR) == Ok(Identity { device, inode })
}

/// Says what the process has too little of, if that is why the system call failed.
pub fn lacking(why: Errno) {
    match why.0 {
        libc::ENOMEM => MEMORY.say(),
        libc::EMFILE | libc::ENFILE => DESCRIPTORS.say(),
        _ => {}
    }
}

/// Whether stderr takes something now: a program does not wait for who reads it.
fn is_writable() -> bool {
    let mut stderr = libc::pollfd { fd: STDERR, events: libc::POLLOUT, revents: 0 };
    let now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    let arguments = [(&raw mut stderr).addr(), 1, (&raw const now).addr(), 0, 0, 0];
    // SAFETY: the kernel reads and writes the struct, and reads the time.
    let ready = unsafe { syscall::call(libc::SYS_ppoll, arguments) };
    ready == Ok(1) && stderr.revents & libc::POLLOUT != 0
}

/// The signals that wait until the thread no longer blocks them.
fn pending() -> u64 {
    let mut set = 0u64;
    // SAFETY: the kernel writes the set.
    let _ = unsafe {
        let arguments = [(&raw mut set).addr(), size_of::<u64>(), 0, 0, 0, 0];
        syscall::call(libc::SYS_rt_sigpending, arguments)
    };
    set
}

/// Takes back those of these signals that wait.
fn take(set: u64) {
    let now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    let arguments = [(&raw const set).addr(), 0, (&raw const now).addr(), size_of::<u64>(), 0, 0];
    // SAFETY: the kernel reads the set and the time.
    while unsafe { syscall::call(libc::SYS_rt_sigtimedwait, arguments) }.is_ok() {}
}
