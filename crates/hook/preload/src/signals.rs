// SPDX-License-Identifier: Apache-2.0
use tare_shm::syscall::sigprocmask;

/// Signals that a thread brings upon itself. One that is blocked then ends the program; SIGSYS
/// is how a sandbox answers our system calls.
const ITS_OWN: [i32; 6] =
    [libc::SIGSEGV, libc::SIGBUS, libc::SIGFPE, libc::SIGILL, libc::SIGTRAP, libc::SIGSYS];

/// The kernel's set, a bit a signal, glibc's own two (cancellation, changes of user) included.
const OTHERS: u64 = {
    let (mut set, mut index) = (!0, 0);
    while index < ITS_OWN.len() {
        set &= !(1 << (ITS_OWN[index] - 1));
        index += 1;
    }
    set
};

/// Does `work`, and no signal handler of the thread comes in between: a handler could do the
/// same work, and it need not return (siglongjmp, exit, a cancellation), so what says that the
/// work is half done would say so for ever.
pub fn held(work: impl FnOnce()) {
    let before = sigprocmask(libc::SIG_BLOCK, OTHERS);
    work();
    if let Ok(before) = before {
        let _ = sigprocmask(libc::SIG_SETMASK, before);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::sync::atomic::{AtomicU32, Ordering::Relaxed};

    static HANDLED: AtomicU32 = AtomicU32::new(0);

    extern "C" fn handle(_: i32) {
        HANDLED.fetch_add(1, Relaxed);
    }

    fn raise(signal: i32) -> u32 {
        // SAFETY: a signal to the own thread, which has a handler for it.
        unsafe { libc::raise(signal) };
        HANDLED.load(Relaxed)
    }

    #[test]
    fn handlers_run_once_the_work_is_done_and_faults_at_once() {
        for signal in [libc::SIGUSR1, libc::SIGSEGV] {
            // SAFETY: the handler only counts.
            unsafe { libc::signal(signal, handle as *const () as libc::sighandler_t) };
        }
        let mask = sigprocmask(libc::SIG_BLOCK, 0).unwrap();
        held(|| {
            assert_eq!(raise(libc::SIGUSR1), 0);
            assert_eq!(raise(libc::SIGSEGV), 1);
        });
        assert_eq!(HANDLED.load(Relaxed), 2);
        assert_eq!(sigprocmask(libc::SIG_BLOCK, 0), Ok(mask));
    }
}
