// SPDX-License-Identifier: Apache-2.0
//! Threads of the program: whether they live, a lock between them, and work that no signal handler
//! interrupts.

use core::sync::atomic::AtomicU32;
use core::sync::atomic::Ordering::{AcqRel, Acquire};
use tare_shm::Errno;
use tare_shm::syscall;

/// Whether a thread of this process has the number, or the kernel cannot be asked.
pub fn is_alive(tid: u32) -> bool {
    let arguments = [syscall::getpid() as usize, tid as usize, 0, 0, 0, 0];
    // SAFETY: signal 0 is none.
    let found = unsafe { syscall::call(libc::SYS_tgkill, arguments) };
    found != Err(Errno(libc::ESRCH))
}

/// Lets another thread go on.
pub fn pause() {
    // SAFETY: no memory is touched.
    let _ = unsafe { syscall::call(libc::SYS_sched_yield, [0; 6]) };
}

/// Takes a lock in which the thread's number then stands; `false` where the own thread is at it
/// already, which a signal handler has interrupted, or another one will not let go: two threads,
/// each interrupted by a handler that wants the other's, would wait for each other for ever.
pub fn hold(holder: &AtomicU32, tid: u32) -> bool {
    const PATIENCE: u32 = 1000;
    const MOST: u32 = 100 * PATIENCE;
    for tries in 1..=MOST {
        match holder.compare_exchange(0, tid, AcqRel, Acquire) {
            Ok(_) => return true,
            Err(other) if other == tid => return false,
            Err(other) if tries % PATIENCE == 0 && !is_alive(other) => {
                let _ = holder.compare_exchange(other, 0, AcqRel, Acquire);
            }
            Err(_) => pause(),
        }
    }
    false
}

/// Does `work`, and no signal handler of the thread comes in between, unless system calls are
/// forbidden.
pub fn undisturbed<T>(work: impl FnOnce() -> T) -> Option<T> {
    let (mut work, mut done) = (Some(work), None);
    let mut once = || done = work.take().map(|work| work());
    if syscall::with_signals_blocked(syscall::FROM_OTHERS, &mut once).is_err() {
        once();
    }
    done
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_at_it_is_not_let_in_again() {
        let holder = AtomicU32::new(0);
        assert!(hold(&holder, 7));
        assert!(!hold(&holder, 7));
        let alive = AtomicU32::new(syscall::gettid());
        assert!(!hold(&alive, 7), "not for ever");
    }
}
