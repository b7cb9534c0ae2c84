// SPDX-License-Identifier: Apache-2.0
//! Descriptors whose numbers are above the program's limit (RLIMIT_NOFILE): they take none of those that
//! the program may use. The kernel checks the limit only when it gives a number. So the copy is made by a
//! process that has the memory and the descriptors of this one, but its own limit: no other thread, and
//! no program that is started meanwhile, sees a raised one.

use core::ffi::{c_int, c_void};
use core::mem::MaybeUninit;
use core::sync::atomic::AtomicBool;
use core::sync::atomic::Ordering::Relaxed;
use libc::rlimit64;
use tare_interpose::real;
use tare_shm::syscall::{self, Errno, call};

/// The kernel refused a hard limit above the program's: that needs CAP_SYS_RESOURCE.
static IS_HARD: AtomicBool = AtomicBool::new(false);

/// What the copying process does, and its answer.
struct Task {
    fd: c_int,
    own: rlimit64,
    end: u64,
    made: Option<c_int>,
}

/// The stack of that process, which makes two system calls.
#[repr(align(16))]
struct Stack(MaybeUninit<[u8; 4096]>);

/// A copy of a descriptor, close-on-exec, with the first free number that is not below the program's
/// limit, but below `end`. `None` if the hard limit does not allow it and the process has no right to
/// raise that.
pub fn copy(fd: c_int, end: u64) -> Option<c_int> {
    let own = limits(None).ok()?;
    let most = if IS_HARD.load(Relaxed) { own.rlim_max.min(end) } else { end };
    if most <= own.rlim_cur {
        return None;
    }
    let mut task = Task { fd, own, end, made: None };
    // The process would handle signals with the program's handlers, in the program's memory.
    syscall::with_signals_blocked(syscall::FROM_OTHERS, || carry_out(&mut task)).ok()?;
    task.made
}

fn carry_out(task: &mut Task) {
    let mut stack = Stack(MaybeUninit::uninit());
    // No signal tells of its end, and only `__WCLONE` waits for it: it is no child of the program's.
    let flags = libc::CLONE_VM | libc::CLONE_FILES | libc::CLONE_VFORK | libc::CLONE_UNTRACED;
    let errno = real::errno();
    // SAFETY: this thread stands still until the process has ended (CLONE_VFORK), so stack and task live;
    // the process has this thread's storage and touches none of it.
    let pid = unsafe {
        let end = stack.0.as_mut_ptr().add(1).cast();
        libc::clone(make, end, flags, core::ptr::from_mut(task).cast())
    };
    real::set_errno(errno);
    if pid > 0 {
        let arguments = [pid as usize, 0, libc::__WCLONE as usize, 0, 0, 0];
        // SAFETY: the kernel writes nothing.
        let _ = unsafe { call(libc::SYS_wait4, arguments) };
    }
}

/// In the copying process.
extern "C" fn make(task: *mut c_void) -> c_int {
    // SAFETY: the task of the thread that waits.
    let task = unsafe { &mut *task.cast::<Task>() };
    let rlimit64 { rlim_cur: soft, rlim_max: hard } = task.own;
    let mut is_raised = false;
    if hard < task.end && !IS_HARD.load(Relaxed) {
        let beyond = rlimit64 { rlim_cur: task.end, rlim_max: task.end };
        is_raised = limits(Some(&beyond)).is_ok();
        IS_HARD.store(!is_raised, Relaxed);
    }
    let within = rlimit64 { rlim_cur: hard.min(task.end), rlim_max: hard };
    if is_raised || within.rlim_cur > soft && limits(Some(&within)).is_ok() {
        task.made = syscall::duplicate(task.fd, soft).ok();
    }
    0
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
        let _alone = crate::descriptors::test_lock::alone();
        let own = limits(None).unwrap();
        let low = rlimit64 { rlim_cur: own.rlim_max.min(4096) / 2, ..own };
        let null = syscall::open(c"/dev/null", libc::O_RDONLY).unwrap();
        let more = rlimit64 { rlim_max: own.rlim_max.saturating_add(1), ..own };
        let may_raise = limits(Some(&more)).is_ok();
        let none_above = rlimit64 { rlim_cur: low.rlim_cur, rlim_max: low.rlim_cur };
        for limit in [Some(low), may_raise.then_some(none_above)].into_iter().flatten() {
            limits(Some(&limit)).unwrap();
            let made = copy(null, own.rlim_max).unwrap();
            assert!(made as u64 >= limit.rlim_cur);
            let now = limits(None).unwrap();
            assert_eq!((now.rlim_cur, now.rlim_max), (limit.rlim_cur, limit.rlim_max));
            assert_eq!(copy(null, limit.rlim_cur), None);
            syscall::close(made);
        }
        limits(Some(&own)).unwrap();
        syscall::close(null);
        // SAFETY: the kernel writes nothing.
        let waited = unsafe { libc::waitpid(-1, core::ptr::null_mut(), libc::__WALL) };
        assert_eq!(waited, -1, "a process is left");
    }
}
