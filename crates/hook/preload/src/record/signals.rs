// SPDX-License-Identifier: Apache-2.0
use crate::thread::Thread;
use core::sync::atomic::Ordering::{AcqRel, Relaxed};
use core::sync::atomic::compiler_fence;
use tare_shm::syscall::{FROM_OTHERS, with_signals_blocked};

/// Does `work`, and no signal handler of the thread comes in between: a handler could do the
/// same work, and it need not return (siglongjmp, exit, a cancellation), so what says that the
/// work is half done would say so for ever.
///
/// Where system calls are forbidden, signals cannot be held, and that is how it is: `false` for
/// a handler that comes in between, and after one that did not return.
pub fn held(work: impl FnOnce()) -> bool {
    let mut work = Some(work);
    let held = with_signals_blocked(FROM_OTHERS, || work.take().map(|work| work()));
    held.is_ok() || work.is_none_or(alone)
}

fn alone(work: impl FnOnce()) -> bool {
    let recording = &Thread::get().state.recording;
    if recording.swap(1, Relaxed) != 0 {
        return false;
    }
    compiler_fence(AcqRel);
    work();
    compiler_fence(AcqRel);
    recording.store(0, Relaxed);
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::sync::atomic::AtomicU32;

    static HANDLED: AtomicU32 = AtomicU32::new(0);

    extern "C" fn handle(_: i32) {
        HANDLED.fetch_add(1, Relaxed);
    }

    fn raise(signal: i32) -> u32 {
        // SAFETY: a signal to the own thread, which has a handler for it.
        unsafe { libc::raise(signal) };
        HANDLED.load(Relaxed)
    }

    fn mask() -> [u64; 16] {
        let mut set = [0; 16];
        // SAFETY: glibc's set has 128 bytes.
        unsafe {
            libc::pthread_sigmask(libc::SIG_BLOCK, core::ptr::null(), set.as_mut_ptr().cast())
        };
        set
    }

    #[test]
    fn handlers_run_once_the_work_is_done_and_faults_at_once() {
        for signal in [libc::SIGUSR1, libc::SIGSEGV] {
            // SAFETY: the handler only counts.
            unsafe { libc::signal(signal, handle as *const () as libc::sighandler_t) };
        }
        let mask = mask();
        assert!(held(|| {
            assert_eq!(raise(libc::SIGUSR1), 0);
            assert_eq!(raise(libc::SIGSEGV), 1);
        }));
        assert_eq!(HANDLED.load(Relaxed), 2);
        assert_eq!(self::mask(), mask);
    }

    #[test]
    fn a_handler_that_comes_in_between_is_refused() {
        assert!(alone(|| assert!(!alone(|| panic!("not alone")))));
        assert!(alone(|| {}));
    }
}
