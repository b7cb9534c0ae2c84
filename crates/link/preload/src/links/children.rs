// SPDX-License-Identifier: Apache-2.0
//! Whether children of this process can still use its links. Each fork leaves both with the writing
//! end of a pipe; the parent closes its own, so the pipe's end says that the child, and all that it
//! forked itself, have ended or started another program.

use crate::descriptors::reserved_descriptors;
use crate::links::busy_wait::{ticks, ticks_per_microsecond};
use crate::links::slots;
use crate::{kernel, state};
use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use core::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, AtomicU64};
use tare_shm::syscall;

/// Forks whose children are watched at a time.
const MOST: usize = 16;
/// Microseconds between two looks.
const SELDOM: u64 = 2000;

struct Child {
    /// 0 for none, the thread that is about to fork, or `WATCHED`.
    parent: AtomicU32,
    /// Hidden descriptors of the pipe.
    reader: AtomicI32,
    writer: AtomicI32,
}

const WATCHED: u32 = u32::MAX;

static CHILDREN: [Child; MOST] = [const {
    Child { parent: AtomicU32::new(0), reader: AtomicI32::new(0), writer: AtomicI32::new(0) }
}; MOST];
/// A child could not be watched.
static IS_UNKNOWN: AtomicBool = AtomicBool::new(false);
/// Forks so far when all children were found to have ended.
static ALONE: AtomicU32 = AtomicU32::new(0);
static IS_LOOKING: AtomicBool = AtomicBool::new(false);
static LOOKED: AtomicU64 = AtomicU64::new(0);

/// A child that is not known to be watched is about to begin.
pub fn unwatched() {
    IS_UNKNOWN.store(true, Release);
    state::forked();
}

/// Before a fork: its child is watched, if there are links that it would share.
pub fn before_fork() {
    if slots::any() && (syscall::are_forbidden() || !begin()) {
        unwatched();
    } else {
        state::forked();
    }
}

fn begin() -> bool {
    let Some(ends) = kernel::pipe() else { return false };
    let [reader, writer] = ends.map(reserved_descriptors::hide);
    let thread = state::thread_number();
    let is_free =
        |child: &&Child| child.parent.compare_exchange(0, thread, AcqRel, Relaxed).is_ok();
    if let (Some(reader), Some(writer)) = (reader, writer)
        && let Some(child) = CHILDREN.iter().find(is_free)
    {
        child.reader.store(reader, Relaxed);
        child.writer.store(writer, Relaxed);
        return true;
    }
    [reader, writer].into_iter().flatten().for_each(reserved_descriptors::close);
    false
}

/// After a fork.
pub fn in_parent() {
    let thread = state::thread_number();
    for child in CHILDREN.iter().filter(|child| child.parent.load(Relaxed) == thread) {
        reserved_descriptors::close(child.writer.load(Relaxed));
        child.parent.store(WATCHED, Release);
    }
}

/// The child keeps the writing ends: as long as it lives, all before it know of it.
pub fn in_child() {
    for child in CHILDREN.iter().filter(|child| child.parent.swap(0, Relaxed) != 0) {
        reserved_descriptors::close(child.reader.load(Relaxed));
    }
}

/// Whether a child may live that began after this number of forks.
pub fn has_forked_since(before: u32) -> bool {
    let forks = state::forks();
    before != forks && ALONE.load(Acquire) != forks && !look(forks)
}

/// Lets the next question be answered as of now, before something that cannot be taken back.
pub fn look_anew() {
    LOOKED.store(0, Relaxed);
}

/// Whether all children have ended, of this number of forks.
#[cold]
fn look(forks: u32) -> bool {
    let (now, looked) = (ticks(), LOOKED.load(Relaxed));
    if IS_UNKNOWN.load(Acquire)
        || now.wrapping_sub(looked) < SELDOM * ticks_per_microsecond()
        || syscall::are_forbidden()
        || IS_LOOKING.swap(true, AcqRel)
    {
        return false;
    }
    LOOKED.store(now, Relaxed);
    let mut are_gone = true;
    for child in CHILDREN.iter().filter(|child| child.parent.load(Acquire) != 0) {
        let reader = child.reader.load(Relaxed);
        let is_gone =
            child.parent.load(Acquire) == WATCHED && kernel::events(reader, 0) & libc::POLLHUP != 0;
        if is_gone {
            reserved_descriptors::close(reader);
            child.parent.store(0, Release);
        }
        are_gone &= is_gone;
    }
    if are_gone {
        // A child may have changed them.
        slots::each(|slot| {
            slot.waiting.store(0, Relaxed);
            slot.is_added.store(2, Relaxed);
        });
        ALONE.store(forks, Release);
    }
    IS_LOOKING.store(false, Release);
    are_gone
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn child_shares_what_there_was_until_it_ends() {
        let _alone = crate::descriptors::test_lock::alone();
        let earlier = state::forks();
        let [reader, writer] = kernel::pipe().unwrap();
        assert!(begin());
        state::forked();
        // SAFETY: the child makes system calls only.
        let child = unsafe { libc::fork() };
        if child == 0 {
            reserved_descriptors::forked();
            in_child();
            syscall::close(writer);
            let _ = syscall::read(reader, &mut [0]);
            // SAFETY: nothing of the parent's is run.
            unsafe { libc::_exit(0) };
        }
        in_parent();
        syscall::close(reader);
        for _ in 0..3 {
            kernel::sleep(2 * SELDOM as i64);
            assert!(has_forked_since(earlier) && !has_forked_since(state::forks()));
        }
        syscall::close(writer);
        // SAFETY: the kernel writes nothing.
        assert_eq!(unsafe { libc::waitpid(child, core::ptr::null_mut(), 0) }, child);
        while has_forked_since(earlier) {
            kernel::yield_now();
        }
        assert!(CHILDREN.iter().all(|child| child.parent.load(Relaxed) == 0));
    }
}
