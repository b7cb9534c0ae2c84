// SPDX-License-Identifier: Apache-2.0
use crate::{RINGS, Shared};
use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, SeqCst};
use tare_shm::process;

/// In an owner: its thread's number is that of another PID namespace than tare-hook's, where
/// it may be another thread's or nobody's.
const FOREIGN: u32 = 1 << 31;

impl Shared {
    /// For tare-hook: numbers of threads are looked up where the calling process is.
    pub fn settle(&self) {
        self.namespace.store(process::pid_namespace().unwrap_or(0), Relaxed);
    }

    /// Whether the calling process is where threads have the numbers that owners are.
    pub fn is_settled_here(&self) -> bool {
        process::pid_namespace().unwrap_or(0) == self.namespace.load(Relaxed)
    }

    /// The places of the rings that ever had an owner.
    pub fn used(&self) -> impl Iterator<Item = usize> {
        let is_used =
            |place: &usize| self.used[*place / 64].load(Relaxed) & 1 << (*place % 64) != 0;
        (0..RINGS).filter(is_used)
    }

    /// Takes a ring for the calling thread, which has number `tid` and no ring that it knows
    /// of; says its place. One that has the number already is its own from before an exec, or
    /// that of a thread which has ended.
    pub fn claim(&self, tid: u32) -> Option<usize> {
        let is_here =
            || process::pid_namespace().is_some_and(|own| own == self.namespace.load(Relaxed));
        let mut places = (0..RINGS).map(|step| (tid as usize + step) % RINGS);
        let mut own = places.clone().filter(|place| self.owners[*place].load(Relaxed) == tid);
        if let Some(place) = own.next()
            && is_here()
        {
            return Some(place);
        }
        let take = |place: &usize| {
            self.owners[*place].compare_exchange(0, tid | FOREIGN, AcqRel, Relaxed).is_ok()
        };
        let place = places.find(take)?;
        self.used[place / 64].fetch_or(1 << (place % 64), Relaxed);
        if is_here() {
            self.owners[place].store(tid, Relaxed);
        }
        Some(place)
    }

    /// For tare-hook: no thread finds this ring its own, or free.
    pub fn withhold(&self, place: usize) {
        self.owners[place].store(FOREIGN, SeqCst);
    }

    /// The thread that owns a ring and that tare-hook can look for; `None` where the ring is
    /// free, or its owner is another namespace's and keeps it.
    pub fn owner(&self, place: usize) -> Option<u32> {
        let owner = self.owners[place].load(Acquire);
        (owner != 0 && owner & FOREIGN == 0).then_some(owner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::VERSION;
    use tare_shm::Segment;

    #[test]
    fn the_number_of_a_thread_in_another_namespace_is_nobodys() {
        let size = size_of::<Shared>();
        let segment = Segment::create(c"test", Shared::KIND, VERSION, size);
        // SAFETY: atomics only.
        let shared: &Shared = unsafe { segment.unwrap().1.at(0) }.unwrap();
        shared.settle();
        let place = shared.claim(7).unwrap();
        assert_eq!((place, shared.owner(place)), (7, Some(7)));
        assert_eq!(shared.claim(7), Some(7), "executed another program");

        shared.namespace.store(1, Relaxed);
        let place = shared.claim(7).unwrap();
        assert_eq!((place, shared.owner(place)), (8, None));
        assert_ne!(shared.owners[place].load(Relaxed), 0);
        assert_eq!(shared.used().collect::<std::vec::Vec<_>>(), [7, 8]);
        assert!(!shared.is_settled_here());
        let rest = (2..RINGS).filter_map(|_| shared.claim(7)).count();
        assert_eq!((rest, shared.claim(7)), (RINGS - 2, None));

        shared.settle();
        assert_eq!(shared.claim(7), Some(7));
        shared.withhold(7);
        assert_eq!((shared.claim(7), shared.owner(7)), (None, None));
    }
}
