// SPDX-License-Identifier: Apache-2.0
use std::io;
use std::sync::atomic::Ordering::{Relaxed, Release};
use tare_hook_segment::{EVENT_WORDS, Event, RINGS, Shared};

/// Events taken from a ring at once.
const BATCH: usize = 128;
/// Batches taken from a ring before the next has its turn: more than a ring holds.
const TURNS: usize = 32;

/// Takes events out of the rings and puts them in order of time.
pub struct Drain {
    shared: &'static Shared,
    pending: Vec<Event>,
    /// The rings that ever had an owner; looking into others would give them memory.
    used: [bool; RINGS],
    /// Records that were no events.
    damaged: u64,
}

impl Drain {
    pub fn new(shared: &'static Shared) -> Self {
        shared.settle();
        Self { shared, pending: Vec::new(), used: [false; RINGS], damaged: 0 }
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

    /// The events up to `ticks`, the oldest first. Later ones wait: another thread may be
    /// about to record one that is older. None is later than it was taken out of its ring,
    /// so each waits for one turn at most.
    pub fn until(&mut self, ticks: u64) -> Vec<Event> {
        self.pending.sort_by_key(|event| event.ticks);
        let end = self.pending.partition_point(|event| event.ticks <= ticks);
        self.pending.drain(..end).collect()
    }

    /// Gives the rings of threads that have ended to others.
    pub fn reclaim(&mut self) {
        for place in 0..RINGS {
            if self.shared.owner(place).is_some_and(|thread| !is_alive(thread)) {
                self.empty(place);
                self.shared.owners[place].store(0, Release);
            }
        }
    }

    /// Events that were seen and are in no file: full rings, too many threads, damage.
    pub fn lost(&self) -> u64 {
        let used = self.shared.rings.iter().zip(self.used).filter(|(_, used)| *used);
        let full = used.filter_map(|(ring, _)| ring.ring()).map(|ring| ring.lost());
        full.fold(self.shared.lost.load(Relaxed), u64::saturating_add).saturating_add(self.damaged)
    }

    fn empty(&mut self, place: usize) {
        self.used[place] = true;
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
    use crate::segments::Segments;
    use tare_hook_segment::{Action, Direction};

    fn event(ticks: u64) -> Event {
        Event {
            ticks,
            pid: 1,
            tid: 2,
            generation: 1,
            keyword: 0,
            symbol: 0,
            direction: Direction::In,
            action: Action::Trace,
            offset: 0,
            family: libc::AF_INET as u16,
            local_port: 80,
            remote_port: 4000,
            local: [0; 16],
            remote: [0; 16],
        }
    }

    fn ticks(events: &[Event]) -> Vec<u64> {
        events.iter().map(|event| event.ticks).collect()
    }

    #[test]
    fn events_of_several_threads_come_in_order_of_time() {
        let shared = Segments::create().unwrap().shared;
        for (place, times) in [[1, 4, 9], [2, 3, 12]].iter().enumerate() {
            let ring = &shared.rings[place];
            shared.owners[place].store(std::process::id(), Relaxed);
            times
                .iter()
                .for_each(|time| assert!(ring.ring().unwrap().push(&event(*time).encode())));
        }
        let mut drain = Drain::new(shared);
        assert!(drain.collect());
        assert_eq!(ticks(&drain.until(5)), [1, 2, 3, 4]);
        assert!(!drain.collect());
        assert_eq!(ticks(&drain.until(u64::MAX)), [9, 12]);
        assert_eq!(drain.lost(), 0);
    }

    #[test]
    fn a_time_in_the_future_is_now() {
        let shared = Segments::create().unwrap().shared;
        shared.owners[0].store(std::process::id(), Relaxed);
        assert!(shared.rings[0].ring().unwrap().push(&event(u64::MAX).encode()));
        let mut drain = Drain::new(shared);
        let before = tare_clock::ticks();
        assert!(drain.collect());
        let after = tare_clock::ticks();
        let [found] = drain.until(after)[..] else { panic!("it waits") };
        assert!((before..=after).contains(&found.ticks));
    }

    #[test]
    fn the_ring_of_a_dead_thread_is_emptied_and_freed() {
        let shared = Segments::create().unwrap().shared;
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
        assert_eq!(ticks(&drain.until(u64::MAX)), [7]);
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
        let shared = Segments::create().unwrap().shared;
        let ring = &shared.rings[0];
        shared.owners[0].store(std::process::id(), Relaxed);
        assert!(ring.ring().unwrap().push(&[u64::MAX; EVENT_WORDS]));
        assert!(ring.ring().unwrap().push(&[1, 2, 3]));
        let mut drain = Drain::new(shared);
        assert!(!drain.collect());
        assert_eq!(drain.lost(), 2);
        while ring.ring().unwrap().push(&event(1).encode()) {}
        assert_eq!(drain.lost(), 3);
    }
}
