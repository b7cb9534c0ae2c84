// SPDX-License-Identifier: Apache-2.0
//! Forks: which processes have the links of this one, too.

use crate::links::liveness::{self, ProcessLock};
use crate::links::slots;
use crate::state;
use crate::state::thread::Thread;
use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use core::sync::atomic::{AtomicI32, AtomicU32, AtomicU64};
use tare_link_segment::Holders;
use tare_shm::syscall;

/// Forks that threads make at the same time.
const MAX_FORKS: usize = 8;
/// In `State::fork`: a fork that is not one of `FORKS`, which a signal handler may make within another.
const UNLISTED: u32 = 1 << 16;

struct Fork {
    /// Of the child, 0 if the place is free.
    number: AtomicU64,
    fd: AtomicI32,
}

static FORKS: [Fork; MAX_FORKS] =
    [const { Fork { number: AtomicU64::new(0), fd: AtomicI32::new(0) } }; MAX_FORKS];
/// Forks that have begun and not ended.
static IN_PROGRESS: AtomicU32 = AtomicU32::new(0);
/// Forks so far when one began that is not watched: what there was then, others may have for good.
static LAST_UNTRACKED: AtomicU32 = AtomicU32::new(0);
/// Forks so far when no other process lived.
static LAST_EXCLUSIVE: AtomicU32 = AtomicU32::new(0);
static LAST_CHECK: AtomicU64 = AtomicU64::new(0);

/// A child of which it will not be known when it ends is about to begin.
pub fn untracked_fork() {
    slots::each(|slot| slot.holders().into_iter().for_each(Holders::add_unknown));
    state::forked();
    LAST_UNTRACKED.store(state::forks(), Release);
}

/// Whether a thread forks now: what it opens meanwhile, the child may have, too.
pub fn is_in_progress() -> bool {
    IN_PROGRESS.load(Acquire) != 0
}

/// Before a fork: the child has all links of this process.
pub fn before_fork() {
    IN_PROGRESS.fetch_add(1, AcqRel);
    let fork = &Thread::get().state.fork;
    if !slots::any() {
        fork.fetch_add(UNLISTED, Relaxed);
        state::forked();
    } else if fork.load(Relaxed) == 0
        && !syscall::are_forbidden()
        && let Some((place, child)) = begin()
    {
        fork.store(place, Relaxed);
        let own = liveness::own_number();
        slots::each(|slot| slot.share_with_child(own, child));
        // From here on no thread takes it for granted that it has a link alone.
        state::forked();
    } else {
        fork.fetch_add(UNLISTED, Relaxed);
        untracked_fork();
    }
}

/// Returns 1 + the place of the fork, and the number of the child.
fn begin() -> Option<(u32, u64)> {
    let lock = liveness::prepare_fork()?;
    let take = |fork: &Fork| fork.number.compare_exchange(0, lock.number, AcqRel, Relaxed).is_ok();
    let Some(place) = FORKS.iter().position(take) else {
        liveness::after_fork_in_parent(lock);
        return None;
    };
    FORKS[place].fd.store(lock.fd, Relaxed);
    Some((place as u32 + 1, lock.number))
}

/// Takes the fork of a place out of the list.
fn end(place: usize) -> Option<ProcessLock> {
    let fork = FORKS.get(place)?;
    let fd = fork.fd.swap(0, Relaxed);
    let number = fork.number.swap(0, AcqRel);
    (fd != 0).then_some(ProcessLock { number, fd })
}

/// The place of the fork that the thread has made, if it is one of `FORKS`.
fn own_fork() -> Option<usize> {
    let fork = &Thread::get().state.fork;
    let value = fork.load(Relaxed);
    if value >= UNLISTED {
        fork.store(value - UNLISTED, Relaxed);
        return None;
    }
    fork.store(0, Relaxed);
    (value as usize).checked_sub(1)
}

/// After a fork, or one that has failed.
pub fn in_parent() {
    own_fork().and_then(end).into_iter().for_each(liveness::after_fork_in_parent);
    // What was opened meanwhile, the child may have.
    state::forked();
    IN_PROGRESS.fetch_sub(1, AcqRel);
}

/// In the child, which has one thread.
pub fn in_child() {
    let lock = own_fork().and_then(end);
    liveness::after_fork_in_child(lock);
    (0..MAX_FORKS).filter_map(end).for_each(liveness::after_fork_in_parent);
    Thread::get().state.fork.store(0, Relaxed);
    IN_PROGRESS.store(0, Release);
}

/// Whether another process may live that began after this number of forks.
pub fn has_forked_since(before: u32) -> bool {
    let forks = state::forks();
    before < LAST_UNTRACKED.load(Acquire)
        || before != forks && LAST_EXCLUSIVE.load(Acquire) != forks && !is_exclusive(forks)
}

#[cold]
fn is_exclusive(forks: u32) -> bool {
    let is_exclusive = !syscall::are_forbidden()
        && liveness::is_check_due(&LAST_CHECK)
        && !liveness::others_are_alive();
    if is_exclusive {
        LAST_EXCLUSIVE.store(forks, Release);
    }
    is_exclusive
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::descriptors::reserved_descriptors;
    use crate::kernel;

    fn ends(child: i32) {
        // SAFETY: the kernel writes nothing.
        assert_eq!(unsafe { libc::waitpid(child, core::ptr::null_mut(), 0) }, child);
    }

    /// A child that lives until `writer` is closed; with one of its own, which has closed the end.
    fn forks(holders: &Holders, [reader, writer]: [i32; 2]) -> (i32, u64) {
        let (place, number) = begin().unwrap();
        Thread::get().state.fork.store(place, Relaxed);
        holders.add(liveness::own_number(), liveness::is_alive);
        holders.add(number, liveness::is_alive);
        state::forked();
        // SAFETY: the child makes system calls only.
        let child = unsafe { libc::fork() };
        if child == 0 {
            reserved_descriptors::forked();
            in_child();
            syscall::close(writer);
            let _ = syscall::read(reader, &mut [0]);
            // SAFETY: nothing of the parent's is run.
            unsafe { libc::_exit(i32::from(liveness::own_number() != number)) };
        }
        in_parent();
        (child, number)
    }

    #[test]
    fn child_shares_what_there_was_until_it_ends() {
        let _alone = crate::descriptors::test_lock::alone();
        let (holders, earlier) = (Holders::default(), state::forks());
        let own = state::process_number();
        let mut ends_of_pipe = [0; 2];
        // SAFETY: libc writes two numbers.
        assert_eq!(unsafe { libc::pipe2(ends_of_pipe.as_mut_ptr(), libc::O_CLOEXEC) }, 0);
        let others = || liveness::may_be_shared(Some(&holders), own);
        assert!(!others());
        let (child, number) = forks(&holders, ends_of_pipe);
        IN_PROGRESS.store(0, Relaxed);
        assert!(
            others() && liveness::is_alive(number) && liveness::is_alive(liveness::own_number())
        );
        assert!(has_forked_since(earlier) && !has_forked_since(state::forks()));
        holders.remove(number);
        assert!(!others(), "it has closed the end");
        holders.add(number, liveness::is_alive);
        ends_of_pipe.into_iter().for_each(syscall::close);
        ends(child);
        assert!(!liveness::is_alive(number) && !others());
        while has_forked_since(earlier) {
            kernel::yield_now();
        }
        assert!(FORKS.iter().all(|fork| fork.number.load(Relaxed) == 0));
        assert!(liveness::has_number() && !liveness::may_be_shared(Some(&holders), own + 1));
    }
}
