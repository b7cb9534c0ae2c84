// SPDX-License-Identifier: Apache-2.0
use crate::layout::{Channel, MAPPED_STATES, Process, STATES};
use crate::record::{LONGEST, payload_words, wide_words};
use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release, SeqCst};
use core::sync::atomic::{AtomicU64, fence};

/// So many events can be noted at a time; a thread that is stopped in between keeps one place.
const SLOTS: usize = 4;
/// Words of the longest record.
const RECORD: usize = wide_words(LONGEST);
/// A stamp, the thread, its name, and the record.
const SLOT: usize = 4 + RECORD;
const BUSY: u64 = u64::MAX;

/// The last events of a channel, in the segment: they stay when the process is killed. The one
/// that stands longest is replaced, so there is always one that is whole.
pub struct Last<'states>(&'states [AtomicU64]);

/// An event and whose it is.
pub struct Noted {
    pub tid: u32,
    pub name: [u64; 2],
    record: [u64; RECORD],
}

impl Noted {
    /// Its words, and what follows in the place.
    pub fn record(&self) -> &[u64] {
        let words = crate::record::words(self.record[1]).unwrap_or(0);
        &self.record[..words.min(RECORD)]
    }
}

impl Process {
    /// The words at `place`, which is 1 + where they begin, taken if there are none yet; `None`
    /// where there are none left.
    fn state(&self, place: &AtomicU64, words: usize) -> Option<&[AtomicU64]> {
        let known = match place.load(Acquire) {
            0 => {
                let used = self.states_used.fetch_add(words as u64, SeqCst);
                let fresh = used.min(STATES as u64) + 1;
                place.compare_exchange(0, fresh, AcqRel, Acquire).map_or_else(|is| is, |_| fresh)
            }
            known => known,
        };
        let start = usize::try_from(known.checked_sub(1)?).ok().filter(|start| *start < STATES)?;
        let end = start.checked_add(words)?;
        if end > MAPPED_STATES.load(SeqCst) {
            return None;
        }
        self.states.get(start..end)
    }

    /// Where the channel's last event is noted.
    pub fn last(&self, channel: &Channel) -> Option<Last<'_>> {
        self.state(&channel.last_at, SLOTS * SLOT).map(Last)
    }

    /// The last event of the channel, if one was noted since its first.
    pub fn noted(&self, channel: &Channel) -> Option<Noted> {
        if channel.last_at.load(Acquire) == 0 { None } else { self.last(channel)?.newest() }
    }
}

impl Last<'_> {
    /// Notes the event that is number `count` of its channel, of which there was one before: the
    /// first words of its record and the bytes behind them. `false` where every place is being
    /// written.
    pub fn note(
        &self,
        count: u64,
        (tid, name): (u32, [u64; 2]),
        record: &[u64],
        bytes: &[u8],
    ) -> bool {
        const TRIES: usize = 64;
        for _ in 0..TRIES {
            let free = self.slots().filter(|slot| slot[0].load(Relaxed) != BUSY);
            let Some(slot) = free.min_by_key(|slot| slot[0].load(Relaxed)) else { continue };
            let before = slot[0].load(Relaxed);
            if before == BUSY || slot[0].compare_exchange(before, BUSY, AcqRel, Relaxed).is_err() {
                continue;
            }
            // Who reads a word of what follows sees afterwards that somebody writes.
            fence(Release);
            let words = [tid.into(), name[0], name[1]].into_iter();
            let words = words.chain(record.iter().copied()).chain(payload_words(bytes));
            for (place, word) in slot[1..].iter().zip(words) {
                place.store(word, Relaxed);
            }
            slot[0].store(count, Release);
            return true;
        }
        false
    }

    /// The one with the latest time.
    pub fn newest(&self) -> Option<Noted> {
        self.slots().filter_map(read).max_by_key(|noted| noted.record[0])
    }

    /// Forgets all of them.
    pub fn clear(&self) {
        for slot in self.slots() {
            let stamp = slot[0].load(Relaxed);
            if stamp != BUSY {
                let _ = slot[0].compare_exchange(stamp, 0, AcqRel, Relaxed);
            }
        }
    }

    fn slots(&self) -> impl Iterator<Item = &[AtomicU64]> {
        self.0.chunks_exact(SLOT)
    }
}

/// `None` where nothing stands, or somebody writes.
fn read(slot: &[AtomicU64]) -> Option<Noted> {
    let stamp = slot[0].load(Acquire);
    if stamp == 0 || stamp == BUSY {
        return None;
    }
    let mut noted = Noted {
        tid: slot[1].load(Relaxed) as u32,
        name: [2, 3].map(|index| slot[index].load(Relaxed)),
        record: [0; RECORD],
    };
    for (word, place) in noted.record.iter_mut().zip(&slot[4..]) {
        *word = place.load(Relaxed);
    }
    fence(Acquire);
    (slot[0].load(Relaxed) == stamp).then_some(noted)
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use crate::record::short_tag;
    use std::{thread, vec::Vec};

    fn words() -> Vec<AtomicU64> {
        (0..SLOTS * SLOT).map(|_| AtomicU64::new(0)).collect()
    }

    fn record(number: u64) -> [u64; 2] {
        [100 + number, short_tag(1, number as i64).unwrap()]
    }

    #[test]
    fn the_newest_is_there_whoever_was_stopped_in_between() {
        let words = words();
        let last = Last(&words);
        assert!(last.newest().is_none());
        for number in 1..20 {
            assert!(last.note(number, (7, [1, 2]), &record(number), &[]));
            let newest = last.newest().unwrap();
            assert_eq!(
                (newest.tid, newest.name, newest.record()),
                (7, [1, 2], &record(number)[..])
            );
        }
        // A thread has died while it wrote.
        let oldest = last.slots().min_by_key(|slot| slot[0].load(Relaxed)).unwrap();
        oldest[0].store(BUSY, Relaxed);
        assert_eq!(last.newest().unwrap().record(), record(19));
        assert!(last.note(20, (7, [1, 2]), &record(20), &[]));
        assert_eq!(last.newest().unwrap().record(), record(20));
        last.slots().for_each(|slot| slot[0].store(BUSY, Relaxed));
        assert!(!last.note(21, (7, [1, 2]), &record(21), &[]));
    }

    #[test]
    fn what_is_cleared_is_gone() {
        let words = words();
        let last = Last(&words);
        assert!(last.note(1, (7, [0; 2]), &record(1), &[]));
        last.clear();
        assert!(last.newest().is_none());
    }

    #[test]
    fn threads_never_mix_their_events() {
        const EVENTS: u64 = if cfg!(miri) { 50 } else { 20_000 };
        let words = words();
        let shared = &words;
        thread::scope(|scope| {
            for thread in 1..4u32 {
                scope.spawn(move || {
                    for number in 1..EVENTS {
                        let name = [number, u64::from(thread)];
                        let count = 4 * number + u64::from(thread);
                        Last(shared).note(count, (thread, name), &record(number), &[]);
                        if let Some(newest) = Last(shared).newest() {
                            assert_eq!(u64::from(newest.tid), newest.name[1]);
                            assert_eq!(newest.record(), record(newest.name[0]));
                        }
                    }
                });
            }
        });
        assert_eq!(Last(&words).newest().unwrap().record(), record(EVENTS - 1));
    }
}
