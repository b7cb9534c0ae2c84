// SPDX-License-Identifier: Apache-2.0
//! The wish to stop: Ctrl-C, SIGTERM, or an error that ends the work.

use std::io;
use std::sync::atomic::{AtomicI32, Ordering};

/// The signal that came, -1 for a stop without one, 0 for none.
static ASKED: AtomicI32 = AtomicI32::new(0);

extern "C" fn note(signal: libc::c_int) {
    ASKED.store(signal, Ordering::Relaxed);
}

/// Turns SIGINT and SIGTERM into a wish to stop; a second one kills as usual. A file
/// that grows beyond its limit becomes an error of its write.
pub fn catch_signals() -> io::Result<()> {
    for signal in [libc::SIGINT, libc::SIGTERM] {
        // SAFETY: all zeroes is a valid value of this plain structure.
        let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
        action.sa_sigaction = note as *const () as libc::sighandler_t;
        action.sa_flags = libc::SA_RESETHAND;
        // SAFETY: the handler only stores to an atomic, which any context allows.
        if unsafe { libc::sigaction(signal, &action, std::ptr::null_mut()) } != 0 {
            return Err(io::Error::last_os_error());
        }
    }
    // SAFETY: no handler is installed.
    unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_IGN) };
    Ok(())
}

/// Asks every thread to stop.
pub fn ask() {
    let _ = ASKED.compare_exchange(0, -1, Ordering::Relaxed, Ordering::Relaxed);
}

#[inline]
pub fn asked() -> bool {
    ASKED.load(Ordering::Relaxed) != 0
}

/// The signal that asked for the stop.
pub fn signal() -> Option<i32> {
    Some(ASKED.load(Ordering::Relaxed)).filter(|signal| *signal > 0)
}
