// SPDX-License-Identifier: Apache-2.0
use std::io;
use std::sync::atomic::Ordering::{Relaxed, Release};
use tare_hook_segment::{EVENT_WORDS, Event, RINGS, Shared};

/// Events taken from a ring at once.
const BATCH: usize = 128;
/// Batches taken from a ring before the next has its turn: more than a ring holds.
const TURNS: usize = 64;

/// Takes events out of the rings and puts them in order of time.
pub struct Drain {
    shared: &'static Shared,
    pending: Vec<Event>,
    /// Whether the threads that own rings have their numbers here.
    reclaims: bool,
    /// Records that were no events.
    damaged: u64,
}

impl Drain {
    pub fn new(shared: &'static Shared) -> Self {
        Self { shared, pending: Vec::new(), reclaims: shared.is_settled_here(), damaged: 0 }
    }

    /// Takes what stands in the rings now; whether there was anything.
    pub fn collect(&mut self) -> bool {
        let before = self.pending.len();
        for place in 0..RINGS {
            if self.shared.owners[place].load(Relaxed) != 0 {
                self.empty(place);
            }
        }
        self.pending.len() > before
    }

    /// Hands the events up to `ticks` to `take`, the oldest first. Later ones wait: another
    /// thread may be about to record one that is older. None is later than it was taken out of
    /// its ring, so each waits for one turn at most.
    pub fn until<T>(&mut self, ticks: u64, take: impl FnOnce(&[Event]) -> T) -> T {
        // Stable, and so fast on what comes ring by ring, each in order.
        self.pending.sort_by_key(|event| event.ticks);
        let end = self.pending.partition_point(|event| event.ticks <= ticks);
        let taken = take(&self.pending[..end]);
        self.pending.drain(..end);
        taken
    }

    /// Gives the rings of threads that have ended to others.
    pub fn reclaim(&mut self) {
        if !self.reclaims {
            return;
        }
        for place in 0..RINGS {
            let Some(thread) = self.shared.owner(place).filter(|thread| !is_alive(*thread)) else {
                continue;
            };
            // A new thread may have got the number since, and the ring with it. From here on
            // it could not.
            self.shared.withhold(place);
            if is_alive(thread) {
                self.shared.owners[place].store(thread, Release);
            } else {
                self.empty(place);
                self.shared.owners[place].store(0, Release);
            }
        }
    }

    /// Events that never came out of a ring: full rings, too many threads.
    pub fn dropped(&self) -> u64 {
        let full = self.shared.used().filter_map(|place| self.shared.rings[place].ring());
        full.fold(self.shared.lost.load(Relaxed), |sum, ring| sum.saturating_add(ring.lost()))
    }

    /// Events that came out of the rings, since the hook began.
    pub fn taken(&self) -> u64 {
        let rings = self.shared.used().filter_map(|place| self.shared.rings[place].ring());
        rings.fold(0, |sum, ring| sum.saturating_add(ring.taken() / EVENT_WORDS as u64))
    }

    /// Records that came out of the rings and were no events.
    pub fn damaged(&self) -> u64 {
        self.damaged
    }

    fn empty(&mut self, place: usize) {
        let Some(ring) = self.shared.rings[place].ring() else { return };
        let mut words = [0; BATCH * EVENT_WORDS];
        for _ in 0..TURNS {
            let Ok(length) = ring.pop(&mut words) else {
                self.damaged += 1;
                break;
            };
            let now = tare_clock::ticks();
            let (records, rest) = words[..length].as_chunks();
            for record in records {
                match Event::decode(record) {
                    Some(event) => {
                        let ticks = event.ticks.min(now);
                        self.pending.push(Event { ticks, ..event });
                    }
                    None => self.damaged += 1,
                }
            }
            self.damaged += u64::from(!rest.is_empty());
            if length < words.len() {
                break;
            }
        }
    }
}

/// Whether there is such a thread. A program with a thread a connection has thousands that
/// end, and this takes a tenth of a look into /proc.
fn is_alive(thread: u32) -> bool {
    let Ok(thread) = i32::try_from(thread) else { return false };
    // SAFETY: signal 0 is never sent. The number may be any thread's, not only a process's.
    let found = unsafe { libc::kill(thread, 0) } == 0;
    found || io::Error::last_os_error().raw_os_error() != Some(libc::ESRCH)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event_line::tests::EVENT;
    use crate::segments::Segments;

    fn event(ticks: u64) -> Event {
        Event { ticks, ..EVENT }
    }

    fn until(drain: &mut Drain, ticks: u64) -> Vec<u64> {
        drain.until(ticks, |events| events.iter().map(|event| event.ticks).collect())
    }

    #[test]
    fn events_of_several_threads_come_in_order_of_time() {
        let shared = Segments::create().unwrap().0.shared;
        for (thread, times) in [(1, [1, 4, 9]), (2, [2, 3, 12])] {
            let ring = &shared.rings[shared.claim(thread).unwrap()];
            times
                .iter()
                .for_each(|time| assert!(ring.ring().unwrap().push(&event(*time).encode())));
        }
        let mut drain = Drain::new(shared);
        assert!(drain.collect());
        assert_eq!(until(&mut drain, 5), [1, 2, 3, 4]);
        assert!(!drain.collect());
        assert_eq!(until(&mut drain, u64::MAX), [9, 12]);
        assert_eq!((drain.taken(), drain.dropped(), drain.damaged()), (6, 0, 0));
    }

    #[test]
    fn a_time_in_the_future_is_now() {
        let shared = Segments::create().unwrap().0.shared;
        shared.owners[0].store(std::process::id(), Relaxed);
        assert!(shared.rings[0].ring().unwrap().push(&event(u64::MAX).encode()));
        let mut drain = Drain::new(shared);
        let before = tare_clock::ticks();
        assert!(drain.collect());
        let after = tare_clock::ticks();
        let [found] = until(&mut drain, after)[..] else { panic!("it waits") };
        assert!((before..=after).contains(&found));
    }

    #[test]
    fn the_ring_of_a_dead_thread_is_emptied_and_freed() {
        let shared = Segments::create().unwrap().0.shared;
        let (dead, foreign) = (i32::MAX as u32, u32::MAX);
        shared.owners[0].store(dead, Relaxed);
        shared.owners[1].store(std::process::id(), Relaxed);
        shared.owners[2].store(foreign, Relaxed);
        assert!(shared.rings[0].ring().unwrap().push(&event(7).encode()));
        let mut drain = Drain::new(shared);
        drain.reclaim();
        assert_eq!(shared.owners[0].load(Relaxed), 0);
        assert_eq!(shared.owners[1].load(Relaxed), std::process::id());
        assert_eq!(shared.owners[2].load(Relaxed), foreign);
        assert_eq!(until(&mut drain, u64::MAX), [7]);
    }

    #[test]
    fn a_thread_that_leads_no_process_is_alive_until_it_ends() {
        let thread = std::thread::spawn(|| {
            let own = tare_shm::syscall::gettid();
            assert!(is_alive(own));
            own
        });
        let ended = thread.join().unwrap();
        while is_alive(ended) {
            std::thread::yield_now();
        }
        assert!(!is_alive(u32::MAX));
    }

    #[test]
    fn damaged_and_dropped_records_are_counted() {
        let shared = Segments::create().unwrap().0.shared;
        let ring = &shared.rings[shared.claim(std::process::id()).unwrap()];
        assert!(ring.ring().unwrap().push(&[u64::MAX; EVENT_WORDS]));
        assert!(ring.ring().unwrap().push(&[1, 2, 3]));
        let mut drain = Drain::new(shared);
        assert!(!drain.collect());
        assert_eq!((drain.damaged(), drain.dropped()), (2, 0));
        while ring.ring().unwrap().push(&event(1).encode()) {}
        assert_eq!((drain.damaged(), drain.dropped()), (2, 1));
    }

    #[test]
    fn rings_of_threads_that_are_numbered_elsewhere_are_not_freed() {
        let shared = Segments::create().unwrap().0.shared;
        let mut drain = Drain { reclaims: false, ..Drain::new(shared) };
        let dead = i32::MAX as u32;
        shared.owners[0].store(dead, Relaxed);
        drain.reclaim();
        assert_eq!(shared.owners[0].load(Relaxed), dead);
    }
}
