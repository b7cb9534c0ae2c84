// SPDX-License-Identifier: Apache-2.0
use crate::layout::RingHead;
use core::sync::atomic::Ordering::Relaxed;
use core::sync::atomic::{AtomicU32, AtomicU64};

/// What who frees words of a ring notes of it before: the tail that will be, and what is known
/// there. Each side has two and uses the older one, so that the last holds whatever becomes of
/// the next.
#[repr(C)]
pub struct Oldest {
    pub tail: AtomicU64,
    pub lost: AtomicU64,
    pub lost_first: AtomicU64,
    pub lost_last: AtomicU64,
    pub tid: AtomicU32,
    _padding: AtomicU32,
    pub name: [AtomicU64; 2],
}

/// The thread of the oldest record, which stands at `tail`; and where a thread has overwritten
/// what was before, how many events were lost until then, and the times of the first and the
/// last of them that no record tells of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Known {
    pub tail: u64,
    pub lost: u64,
    pub lost_first: u64,
    pub lost_last: u64,
    pub tid: u32,
    pub name: [u64; 2],
}

impl Oldest {
    fn load(&self) -> Known {
        Known {
            tail: self.tail.load(Relaxed),
            lost: self.lost.load(Relaxed),
            lost_first: self.lost_first.load(Relaxed),
            lost_last: self.lost_last.load(Relaxed),
            tid: self.tid.load(Relaxed),
            name: self.name.each_ref().map(|half| half.load(Relaxed)),
        }
    }

    fn store(&self, known: &Known) {
        self.tail.store(known.tail, Relaxed);
        self.lost.store(known.lost, Relaxed);
        self.lost_first.store(known.lost_first, Relaxed);
        self.lost_last.store(known.lost_last, Relaxed);
        self.tid.store(known.tid, Relaxed);
        for (half, known) in self.name.iter().zip(known.name) {
            half.store(known, Relaxed);
        }
    }

    /// Notes it in the older of the two. For one side, before it moves the tail.
    pub fn note(two: &[Self; 2], known: &Known) {
        let is_second_older = two[1].tail.load(Relaxed) < two[0].tail.load(Relaxed);
        two[usize::from(is_second_older)].store(known);
    }

    /// The tail was not moved there.
    pub fn forget(two: &[Self; 2], tail: u64) {
        two.iter()
            .filter(|side| side.tail.load(Relaxed) == tail)
            .for_each(|side| side.store(&Known::default()));
    }
}

impl RingHead {
    /// What is known of the ring where its tail is here. Only true as long as it is: another may
    /// be noted meanwhile.
    pub fn oldest(&self, tail: u64) -> Option<Known> {
        let both = self.overwritten.iter().chain(&self.freed);
        both.map(Oldest::load).find(|known| known.tail == tail)
    }
}
