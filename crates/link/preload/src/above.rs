// SPDX-License-Identifier: Apache-2.0
//! Descriptors whose numbers are above the program's limit (RLIMIT_NOFILE): they take none of those that
//! the program may use. The kernel checks the limit only when it gives a number. So the limit is raised
//! for the one call that makes the copy: other threads may see that, but no program that is started.

use crate::kernel;
use core::ffi::c_int;
use core::sync::atomic::AtomicBool;
use core::sync::atomic::Ordering::{AcqRel, Release};
use libc::rlimit64;
use tare_shm::syscall::{self, Errno, call};

/// A thread has raised the limit, or forks.
static IS_HELD: AtomicBool = AtomicBool::new(false);

/// Before a fork: keeps the limit as it is. Gives up after some time: in a child of the system call,
/// a thread that it does not have may have raised the limit.
pub fn hold() -> bool {
    const TIMES: u32 = 10_000;
    (0..TIMES).any(|_| {
        let is_ours = !IS_HELD.swap(true, AcqRel);
        if !is_ours {
            kernel::yield_now();
        }
        is_ours
    })
}

pub fn let_go() {
    IS_HELD.store(false, Release);
}

/// Has the limit kept as it is around each vfork, whose child has the limit of that moment.
pub fn watch() {
    extern "C" fn before() {
        hold();
    }
    extern "C" fn after() {
        let_go();
    }
    tare_interpose::naked::around_vfork(before, after);
}

/// Does something while the limit stays as it is.
pub fn while_settled<T>(what: impl FnOnce() -> T) -> T {
    let is_ours = hold();
    let done = what();
    if is_ours {
        let_go();
    }
    done
}

/// A copy of a descriptor, close-on-exec, with the first free number that is not below the program's
/// limit, but below `end`. `None` if the hard limit does not allow it.
pub fn copy(fd: c_int, end: u64) -> Option<c_int> {
    let own = limits(None).ok()?;
    let raised = rlimit64 { rlim_cur: own.rlim_max.min(end), ..own };
    if raised.rlim_cur <= own.rlim_cur {
        return None;
    }
    let made = syscall::with_signals_blocked(syscall::FROM_OTHERS, || {
        if !hold() {
            return None;
        }
        let made = limits(Some(&raised)).and_then(|before| {
            let made = syscall::fcntl(fd, libc::F_DUPFD_CLOEXEC, before.rlim_cur as usize);
            // What another thread of the program has set meanwhile stays.
            match limits(Some(&before)) {
                Ok(found) if found.rlim_cur != raised.rlim_cur => {
                    let _ = limits(Some(&found));
                }
                _ => {}
            }
            made
        });
        let_go();
        made.ok()
    });
    made.ok().flatten().map(|fd| fd as c_int)
}

/// The limits of the process, which are changed to these.
fn limits(new: Option<&rlimit64>) -> Result<rlimit64, Errno> {
    let mut old = rlimit64 { rlim_cur: 0, rlim_max: 0 };
    let new = new.map_or(0, |new| core::ptr::from_ref(new).addr());
    let arguments = [0, libc::RLIMIT_NOFILE as usize, new, (&raw mut old).addr(), 0, 0];
    // SAFETY: the kernel reads and writes the limits.
    unsafe { call(libc::SYS_prlimit64, arguments) }.map(|_| old)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn number_is_above_the_limit_which_stays() {
        let _alone = crate::hidden::tests::alone();
        let own = limits(None).unwrap();
        let low = rlimit64 { rlim_cur: own.rlim_max.min(4096) / 2, ..own };
        limits(Some(&low)).unwrap();
        let null = syscall::open(c"/dev/null", libc::O_RDONLY).unwrap();
        let made = copy(null, own.rlim_max).unwrap();
        assert!(made as u64 >= low.rlim_cur);
        assert_eq!(limits(None).unwrap().rlim_cur, low.rlim_cur);
        assert_eq!(copy(null, low.rlim_cur), None);
        limits(Some(&own)).unwrap();
        [made, null].into_iter().for_each(syscall::close);
    }
}
