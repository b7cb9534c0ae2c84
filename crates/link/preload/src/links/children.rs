// SPDX-License-Identifier: Apache-2.0
//! Forks: which processes have the links of this one, too.

use crate::links::family::{self, Birth};
use crate::links::slots;
use crate::state;
use crate::state::thread::Thread;
use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use core::sync::atomic::{AtomicI32, AtomicU32, AtomicU64};
use tare_link_segment::Holders;
use tare_shm::syscall;

/// Forks that threads make at the same time.
const MOST: usize = 8;
/// In `State::fork`: a fork that is not one of `FORKS`, which a signal handler may make within another.
const OTHER: u32 = 1 << 16;

struct Fork {
    /// Of the child, 0 if the place is free.
    number: AtomicU64,
    fd: AtomicI32,
}

static FORKS: [Fork; MOST] =
    [const { Fork { number: AtomicU64::new(0), fd: AtomicI32::new(0) } }; MOST];
/// Forks that have begun and not ended.
static UNDER_WAY: AtomicU32 = AtomicU32::new(0);
/// Forks so far when one began that is not watched: what there was then, others may have for good.
static UNWATCHED: AtomicU32 = AtomicU32::new(0);
/// Forks so far when no other process lived.
static ALONE: AtomicU32 = AtomicU32::new(0);
static LOOKED: AtomicU64 = AtomicU64::new(0);

/// A child of which it will not be known when it ends is about to begin.
pub fn unwatched() {
    slots::each(|slot| slot.holders().into_iter().for_each(Holders::add_unknown));
    state::forked();
    UNWATCHED.store(state::forks(), Release);
}

/// Whether a thread forks now: what it opens meanwhile, the child may have, too.
pub fn is_under_way() -> bool {
    UNDER_WAY.load(Acquire) != 0
}

/// Before a fork: the child has all links of this process.
pub fn before_fork() {
    UNDER_WAY.fetch_add(1, AcqRel);
    let fork = &Thread::get().state.fork;
    if !slots::any() {
        fork.fetch_add(OTHER, Relaxed);
        state::forked();
    } else if fork.load(Relaxed) == 0
        && !syscall::are_forbidden()
        && let Some((place, child)) = begin()
    {
        fork.store(place, Relaxed);
        let own = family::own();
        slots::each(|slot| slot.is_shared_with(own, child));
        // From here on no thread takes it for granted that it has a link alone.
        state::forked();
    } else {
        fork.fetch_add(OTHER, Relaxed);
        unwatched();
    }
}

/// Returns 1 + the place of the fork, and the number of the child.
fn begin() -> Option<(u32, u64)> {
    let birth = family::announce()?;
    let take = |fork: &Fork| fork.number.compare_exchange(0, birth.number, AcqRel, Relaxed).is_ok();
    let Some(place) = FORKS.iter().position(take) else {
        family::has_begun(birth);
        return None;
    };
    FORKS[place].fd.store(birth.fd, Relaxed);
    Some((place as u32 + 1, birth.number))
}

/// Takes the fork of a place out of the list.
fn end(place: usize) -> Option<Birth> {
    let fork = FORKS.get(place)?;
    let fd = fork.fd.swap(0, Relaxed);
    let number = fork.number.swap(0, AcqRel);
    (fd != 0).then_some(Birth { number, fd })
}

/// The place of the fork that the thread has made, if it is one of `FORKS`.
fn own_place() -> Option<usize> {
    let fork = &Thread::get().state.fork;
    let value = fork.load(Relaxed);
    if value >= OTHER {
        fork.store(value - OTHER, Relaxed);
        return None;
    }
    fork.store(0, Relaxed);
    (value as usize).checked_sub(1)
}

/// After a fork, or one that has failed.
pub fn in_parent() {
    own_place().and_then(end).into_iter().for_each(family::has_begun);
    // What was opened meanwhile, the child may have.
    state::forked();
    UNDER_WAY.fetch_sub(1, AcqRel);
}

/// In the child, which has one thread.
pub fn in_child() {
    let birth = own_place().and_then(end);
    family::begin(birth);
    (0..MOST).filter_map(end).for_each(family::has_begun);
    Thread::get().state.fork.store(0, Relaxed);
    UNDER_WAY.store(0, Release);
}

/// Whether another process may live that began after this number of forks.
pub fn has_forked_since(before: u32) -> bool {
    let forks = state::forks();
    before < UNWATCHED.load(Acquire)
        || before != forks && ALONE.load(Acquire) != forks && !is_alone(forks)
}

#[cold]
fn is_alone(forks: u32) -> bool {
    let is_alone =
        !syscall::are_forbidden() && family::is_time_to_look(&LOOKED) && !family::others_live();
    if is_alone {
        ALONE.store(forks, Release);
    }
    is_alone
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
        holders.add(family::own(), family::lives);
        holders.add(number, family::lives);
        state::forked();
        // SAFETY: the child makes system calls only.
        let child = unsafe { libc::fork() };
        if child == 0 {
            reserved_descriptors::forked();
            in_child();
            syscall::close(writer);
            let _ = syscall::read(reader, &mut [0]);
            // SAFETY: nothing of the parent's is run.
            unsafe { libc::_exit(i32::from(family::own() != number)) };
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
        let others = || family::have(Some(&holders), own);
        assert!(!others());
        let (child, number) = forks(&holders, ends_of_pipe);
        UNDER_WAY.store(0, Relaxed);
        assert!(others() && family::lives(number) && family::lives(family::own()));
        assert!(has_forked_since(earlier) && !has_forked_since(state::forks()));
        holders.remove(number);
        assert!(!others(), "it has closed the end");
        holders.add(number, family::lives);
        ends_of_pipe.into_iter().for_each(syscall::close);
        ends(child);
        assert!(!family::lives(number) && !others());
        while has_forked_since(earlier) {
            kernel::yield_now();
        }
        assert!(FORKS.iter().all(|fork| fork.number.load(Relaxed) == 0));
        assert!(family::is_here() && !family::have(Some(&holders), own + 1));
    }
}
