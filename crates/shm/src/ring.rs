// SPDX-License-Identifier: Apache-2.0
#[cfg(not(loom))]
use core::sync::atomic::AtomicU64;
use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
#[cfg(loom)]
use loom::sync::atomic::AtomicU64;

/// One word of a ring's memory. Words are atomics because the other process may write
/// them at any time, whatever it should do.
pub type Word = AtomicU64;

/// The counters of a ring, those of its two ends 128 bytes apart (adjacent lines are
/// prefetched in pairs). All zero is an empty ring.
#[repr(C)]
#[derive(Debug, Default)]
pub struct Indices {
    producer: ProducerLine,
    consumer: ConsumerLine,
}

#[repr(C, align(128))]
#[derive(Debug, Default)]
struct ProducerLine {
    /// Words written since the beginning.
    head: AtomicU64,
    /// The consumer's index as the producer last saw it: its line is read only when
    /// the ring looks full.
    tail_seen: AtomicU64,
    /// Records dropped because the ring was full.
    lost: AtomicU64,
}

#[repr(C, align(128))]
#[derive(Debug, Default)]
struct ConsumerLine {
    /// Words read since the beginning.
    tail: AtomicU64,
}

/// What a producer or a consumer that keeps its own place in the words needs of the counters.
impl Indices {
    /// The producer's counter, to be advanced with release order.
    pub fn head(&self) -> &Word {
        &self.producer.head
    }

    /// Words read since the beginning; with what was read there, when the producer asks.
    pub fn tail(&self) -> u64 {
        self.consumer.tail.load(Acquire)
    }

    /// For the producer: one more record is lost.
    pub fn lose(&self) {
        let lost = &self.producer.lost;
        lost.store(lost.load(Relaxed).wrapping_add(1), Relaxed);
    }

    /// For the producer: so many records were lost since the beginning.
    pub fn lose_until(&self, lost: u64) {
        self.producer.lost.store(lost, Relaxed);
    }

    /// Records lost since the beginning.
    pub fn lost(&self) -> u64 {
        self.producer.lost.load(Relaxed)
    }

    /// Frees the words from `from`, the tail as last seen, up to `to`; says where the tail is
    /// if the other end has moved it, as a producer that overwrites does.
    pub fn free(&self, from: u64, to: u64) -> Result<(), u64> {
        self.consumer.tail.compare_exchange(from, to, AcqRel, Acquire).map(drop)
    }
}

/// The producer's index is one that no producer writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Corrupt;

/// A ring of words with one producer and one consumer at a time, of any process. A record
/// is what one `push` writes: it appears whole or not at all, also when the producer is
/// killed in the middle. A full ring drops and counts, and never waits.
#[derive(Clone, Copy, Debug)]
pub struct Ring<'memory> {
    indices: &'memory Indices,
    words: &'memory [Word],
}

impl<'memory> Ring<'memory> {
    /// `None` unless the number of words is a power of two.
    pub fn new(indices: &'memory Indices, words: &'memory [Word]) -> Option<Self> {
        words.len().is_power_of_two().then_some(Self { indices, words })
    }

    /// Appends `record`, or drops it, counts it and says false. For the producer alone:
    /// a signal handler that interrupts a push must not push to the same ring.
    #[inline]
    pub fn push(&self, record: &[u64]) -> bool {
        let line = &self.indices.producer;
        let head = line.head.load(Relaxed);
        if !self.has_room(head, line.tail_seen.load(Relaxed), record.len()) {
            // Acquire: the consumer's reads are over before their words are written again.
            let tail = self.indices.consumer.tail.load(Acquire);
            line.tail_seen.store(tail, Relaxed);
            if !self.has_room(head, tail, record.len()) {
                line.lost.store(line.lost.load(Relaxed).wrapping_add(1), Relaxed);
                return false;
            }
        }
        for (index, word) in record.iter().enumerate() {
            self.word(head.wrapping_add(index as u64)).store(*word, Relaxed);
        }
        line.head.store(head.wrapping_add(record.len() as u64), Release);
        true
    }

    /// A tail that no consumer writes makes the ring look full.
    #[inline]
    fn has_room(&self, head: u64, tail: u64, words: usize) -> bool {
        let used = head.wrapping_sub(tail);
        used.checked_add(words as u64).is_some_and(|needed| needed <= self.words.len() as u64)
    }

    /// Moves the oldest words into `out`, as many as there are and fit, and says how many.
    /// Records of one length are never torn if `out` has room for a whole number of
    /// them. For the consumer alone. After `Corrupt` the ring is empty and goes on.
    pub fn pop(&self, out: &mut [u64]) -> Result<usize, Corrupt> {
        let tail = self.indices.consumer.tail.load(Relaxed);
        let head = self.indices.producer.head.load(Acquire);
        let ready = head.wrapping_sub(tail);
        if ready > self.words.len() as u64 {
            self.indices.consumer.tail.store(head, Release);
            return Err(Corrupt);
        }
        let length = out.len().min(ready as usize);
        for (index, place) in out[..length].iter_mut().enumerate() {
            *place = self.word(tail.wrapping_add(index as u64)).load(Relaxed);
        }
        self.indices.consumer.tail.store(tail.wrapping_add(length as u64), Release);
        Ok(length)
    }

    /// Words taken out so far.
    pub fn taken(&self) -> u64 {
        self.indices.consumer.tail.load(Relaxed)
    }

    /// Records dropped so far.
    pub fn lost(&self) -> u64 {
        self.indices.producer.lost.load(Relaxed)
    }

    #[inline]
    fn word(&self, index: u64) -> &Word {
        // The mask bounds the index whatever the counters hold.
        &self.words[index as usize & (self.words.len() - 1)]
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    extern crate std;
    use super::*;
    use std::{thread, vec::Vec};

    #[test]
    fn the_c_header_has_the_same_offsets() {
        use core::mem::offset_of;
        let producer = offset_of!(Indices, producer);
        let ours = [
            ("head", producer + offset_of!(ProducerLine, head)),
            ("tail_seen", producer + offset_of!(ProducerLine, tail_seen)),
            ("lost", producer + offset_of!(ProducerLine, lost)),
            ("tail", offset_of!(Indices, consumer) + offset_of!(ConsumerLine, tail)),
        ];
        let theirs = include_str!("../../../include/tare_shm.h").lines().filter_map(|line| {
            let rest = line.strip_prefix("TARE_SHM_AT(tare_shm_ring, ")?;
            let (field, offset) = rest.strip_suffix(");")?.split_once(", ")?;
            Some((field, offset.parse().unwrap()))
        });
        assert!(theirs.eq(ours));
    }

    fn words<const N: usize>() -> [Word; N] {
        [const { Word::new(0) }; N]
    }

    #[test]
    fn records_come_out_in_order_and_the_full_ring_counts() {
        let (indices, words) = (Indices::default(), words::<8>());
        let ring = Ring::new(&indices, &words).unwrap();
        assert!(ring.push(&[1, 2, 3]));
        assert!(ring.push(&[4, 5, 6]));
        assert!(!ring.push(&[7, 8, 9]));
        assert_eq!((ring.lost(), ring.taken()), (1, 0));
        let mut out = [0; 3];
        assert_eq!((ring.pop(&mut out), out), (Ok(3), [1, 2, 3]));
        assert!(ring.push(&[7, 8, 9]), "room again, across the end");
        assert_eq!((ring.pop(&mut out), out), (Ok(3), [4, 5, 6]));
        assert_eq!((ring.pop(&mut out), out), (Ok(3), [7, 8, 9]));
        assert_eq!(ring.taken(), 9);
        assert_eq!(ring.pop(&mut out), Ok(0));
    }

    #[test]
    fn a_record_longer_than_the_ring_is_dropped() {
        let (indices, words) = (Indices::default(), words::<2>());
        let ring = Ring::new(&indices, &words).unwrap();
        assert!(!ring.push(&[1, 2, 3]));
        assert_eq!(ring.lost(), 1);
        assert_eq!(ring.pop(&mut [0]), Ok(0));
    }

    #[test]
    fn only_powers_of_two_are_rings() {
        let (indices, words) = (Indices::default(), words::<8>());
        assert!(Ring::new(&indices, &words[..6]).is_none());
        assert!(Ring::new(&indices, &[]).is_none());
    }

    #[test]
    fn hostile_indices_neither_panic_nor_reach_outside() {
        let values = [0, 1, 7, 8, 9, u64::MAX, u64::MAX - 7, 1 << 63];
        for head in values {
            for tail in values {
                let (indices, words) = (Indices::default(), words::<8>());
                indices.producer.head.store(head, Relaxed);
                indices.producer.tail_seen.store(tail, Relaxed);
                indices.consumer.tail.store(tail, Relaxed);
                let ring = Ring::new(&indices, &words).unwrap();
                ring.push(&[1, 2]);
                let mut out = [0; 16];
                match ring.pop(&mut out) {
                    Ok(length) => assert!(length <= 8),
                    Err(Corrupt) => assert_eq!(ring.pop(&mut out), Ok(0)),
                }
            }
        }
    }

    #[test]
    fn two_threads_pass_every_record_whole() {
        const RECORDS: u64 = if cfg!(miri) { 200 } else { 100_000 };
        let (indices, words) = (Indices::default(), words::<64>());
        let ring = Ring::new(&indices, &words).unwrap();
        let mut seen = Vec::new();
        thread::scope(|scope| {
            scope.spawn(|| {
                for number in 0..RECORDS {
                    while !ring.push(&[number, !number]) {
                        thread::yield_now();
                    }
                }
            });
            let mut out = [0; 6];
            while seen.len() < RECORDS as usize {
                let length = ring.pop(&mut out).unwrap();
                for record in out[..length].chunks(2) {
                    assert_eq!(record[1], !record[0]);
                    seen.push(record[0]);
                }
                if length == 0 {
                    thread::yield_now();
                }
            }
        });
        assert!(seen.iter().copied().eq(0..RECORDS));
    }
}
