// SPDX-License-Identifier: Apache-2.0
//! The wish to stop: Ctrl-C, SIGTERM, or an error that ends the work.

use std::io;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicI32, Ordering};
use std::time::Duration;

/// Whoever waits looks at the wish to stop so often, at least.
pub const LOOK_UP: Duration = Duration::from_millis(50);

/// The signal that came, -1 for a stop without one, 0 for none.
static ASKED: AtomicI32 = AtomicI32::new(0);
static FAILURE: OnceLock<&str> = OnceLock::new();

extern "C" fn note(signal: libc::c_int) {
    ASKED.store(signal, Ordering::Relaxed);
}

/// Turns SIGINT and SIGTERM into a wish to stop; a second one kills as usual, and one that
/// whoever started us ignores (a shell does for `&`) stays ignored. A file that grows beyond
/// its limit becomes an error of its write.
pub fn catch_signals() -> io::Result<()> {
    for signal in [libc::SIGINT, libc::SIGTERM] {
        // SAFETY: all zeroes is a valid value of this plain structure.
        let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
        // SAFETY: `action` is a valid place for what is set now.
        if unsafe { libc::sigaction(signal, std::ptr::null(), &mut action) } != 0 {
            return Err(io::Error::last_os_error());
        }
        if action.sa_sigaction == libc::SIG_IGN {
            continue;
        }
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

/// Asks every thread to stop, and says what makes the work fail.
pub fn fail(why: &'static str) {
    let _ = FAILURE.set(why);
    ask();
}

/// Why the work failed, if [`fail`] said so.
pub fn failure() -> Option<&'static str> {
    FAILURE.get().copied()
}

#[inline]
pub fn asked() -> bool {
    ASKED.load(Ordering::Relaxed) != 0
}

/// The signal that asked for the stop.
pub fn signal() -> Option<i32> {
    Some(ASKED.load(Ordering::Relaxed)).filter(|signal| *signal > 0)
}
