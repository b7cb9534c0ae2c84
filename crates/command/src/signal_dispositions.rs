// SPDX-License-Identifier: Apache-2.0
//! Signals that this process was started with as ignored. A program that it runs should
//! find them so, too, but all change on the way: Rust's runtime ignores SIGPIPE before
//! `main`, and gives a child the default; SIGCHLD has to be heard to learn of a child's end; of
//! a file that grows too large (`ulimit -f`) an error says more than SIGXFSZ.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

static IGNORED: [(i32, AtomicBool); 3] = [
    (libc::SIGPIPE, AtomicBool::new(false)),
    (libc::SIGCHLD, AtomicBool::new(false)),
    (libc::SIGXFSZ, AtomicBool::new(false)),
];

/// Called by libc before `main`, and so before Rust's runtime.
#[used]
#[unsafe(link_section = ".init_array")]
static BEFORE_MAIN: extern "C" fn() = note;

extern "C" fn note() {
    for (signal, ignored) in &IGNORED {
        // SAFETY: a sigaction of zeros is valid, and the kernel only writes to it.
        let action = unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            libc::sigaction(*signal, std::ptr::null(), &mut action);
            action.sa_sigaction
        };
        ignored.store(action == libc::SIG_IGN, Relaxed);
    }
    // SAFETY: no handler is installed.
    unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_IGN) };
}

/// Ignores again what was ignored at the start, and nothing else of them; for a child
/// between fork and exec.
pub fn restore() {
    for (signal, ignored) in &IGNORED {
        let action = if ignored.load(Relaxed) { libc::SIG_IGN } else { libc::SIG_DFL };
        // SAFETY: async-signal-safe; no handler is installed.
        unsafe { libc::signal(*signal, action) };
    }
}
