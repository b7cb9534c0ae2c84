// SPDX-License-Identifier: Apache-2.0
//! Memory for copies. Stacks are the program's and may be small, and memory of each thread would be
//! taken from its stack: so a few buffers are for all threads.

use crate::thread::Thread;
use core::cell::UnsafeCell;
use core::mem::MaybeUninit;
use core::sync::atomic::AtomicBool;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

const COUNT: usize = 32;
const LARGE: usize = 16 << 10;
/// On the stack: for nearly all that servers of requests send, and where no large one is free, as
/// after many handlers of signals that did not return.
const SMALL: usize = 512;

#[repr(align(4096))]
struct Buffer(UnsafeCell<[MaybeUninit<u8>; LARGE]>);

// SAFETY: used by the one thread that has set its `IS_TAKEN`.
unsafe impl Sync for Buffer {}

static BUFFERS: [Buffer; COUNT] =
    [const { Buffer(UnsafeCell::new([MaybeUninit::zeroed(); LARGE])) }; COUNT];
static IS_TAKEN: [AtomicBool; COUNT] = [const { AtomicBool::new(false) }; COUNT];

/// Does `work` with a buffer, a large one for so many bytes.
pub fn with<T>(wanted: usize, work: impl FnOnce(&mut [MaybeUninit<u8>]) -> T) -> T {
    let Some(place) = (wanted > SMALL).then(take).flatten() else { return with_small(work) };
    // SAFETY: nobody else has it until it is given back.
    let done = work(unsafe { &mut *BUFFERS[place].0.get() });
    IS_TAKEN[place].store(false, Release);
    done
}

/// Not inlined, so that the buffer is on the stack only while it is used.
#[inline(never)]
fn with_small<T>(work: impl FnOnce(&mut [MaybeUninit<u8>]) -> T) -> T {
    work(&mut [MaybeUninit::uninit(); SMALL])
}

fn take() -> Option<usize> {
    let (_, tid) = Thread::get().identity();
    let mut places = (0..COUNT).map(|step| (tid as usize + step) % COUNT);
    let is_free = |place: &usize| {
        let is_taken = &IS_TAKEN[*place];
        !is_taken.load(Relaxed) && !is_taken.swap(true, Acquire)
    };
    places.find(is_free)
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use std::sync::{Mutex, MutexGuard, PoisonError};

    /// The buffers belong to the process: tests that take large ones run one after the other.
    pub fn alone() -> MutexGuard<'static, ()> {
        static ALONE: Mutex<()> = Mutex::new(());
        ALONE.lock().unwrap_or_else(PoisonError::into_inner)
    }

    #[test]
    fn those_who_find_none_have_a_small_one() {
        let _alone = alone();
        fn nested(depth: usize) -> Vec<usize> {
            with(SMALL + 1, |buffer| {
                let mut sizes = if depth == 0 { vec![] } else { nested(depth - 1) };
                sizes.push(buffer.len());
                sizes
            })
        }
        assert_eq!(nested(COUNT), [vec![SMALL], vec![LARGE; COUNT]].concat());
        assert_eq!(with(SMALL, |buffer| buffer.len()), SMALL);
        assert_eq!(with(SMALL + 1, |buffer| buffer.len()), LARGE);
    }
}
