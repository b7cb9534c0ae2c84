// SPDX-License-Identifier: Apache-2.0
extern crate std;
use super::*;
use crate::record::{Record, Records};
use core::sync::atomic::Ordering::Acquire;
use std::{boxed::Box, thread, vec::Vec};

const WORDS: usize = 256;

struct Memory {
    head: Box<RingHead>,
    words: Vec<Word>,
    modes: Vec<AtomicU8>,
}

impl Memory {
    fn new() -> Self {
        // SAFETY: zeros are an empty ring.
        let head = unsafe { Box::<RingHead>::new_zeroed().assume_init() };
        let words = (0..WORDS).map(|_| Word::new(0)).collect();
        let modes = (0..=u16::MAX).map(|_| AtomicU8::new(mode::RING)).collect();
        Self { head, words, modes }
    }

    fn writer(&self) -> Writer {
        let writer = Writer::new();
        // SAFETY: the memory outlives the writer in each test.
        let begun = unsafe { writer.begin(&*self.head, &*self.words, self.modes.as_ptr()) };
        begun.unwrap();
        writer
    }

    /// What a collector takes: the numbers that are still there when it frees them.
    fn take(&self, out: &mut Vec<i64>) -> usize {
        let from = self.head.indices.tail();
        let to = self.head.indices.head().load(Acquire);
        let word = |at: u64| self.words[at as usize & (WORDS - 1)].load(Relaxed);
        let mut copy: Vec<u64> = (from..to).map(word).collect();
        let mut at = from;
        while let Err(now) = self.head.indices.free(at, to) {
            copy.drain(..((now - at) as usize).min(copy.len()));
            at = now;
            if now >= to {
                break;
            }
        }
        let count = out.len();
        out.extend(Records::new(&copy).filter_map(|record| match record.unwrap() {
            Record::Short { payload, .. } => Some(payload),
            _ => None,
        }));
        out.len() - count
    }
}

fn put(writer: &Writer, number: i64) {
    let record = [number as u64, short_tag(1, number).unwrap()];
    while !writer.push(&record) {
        assert!(writer.overwrite());
    }
}

#[test]
fn the_fast_path_writes_what_there_is_room_for() {
    let memory = Memory::new();
    let writer = memory.writer();
    assert!(!writer.log(1, 1, || 9), "it does not know of any room yet");
    assert!(writer.push(&[9, short_tag(1, 1).unwrap()]));
    assert!(writer.log(1, 2, || 9));
    assert!(!writer.log(1, i64::MAX, || 9));
    memory.modes[1].store(mode::NULL, Relaxed);
    assert!(writer.log(1, 3, || 9));
    memory.modes[1].store(mode::OUT_OF_LINE, Relaxed);
    assert!(!writer.log(1, 3, || 9));
    let mut taken = Vec::new();
    memory.take(&mut taken);
    assert_eq!(taken, [1, 2]);
}

#[test]
fn a_writer_goes_on_after_an_event_that_was_broken_off() {
    let memory = Memory::new();
    let writer = memory.writer();
    assert!(writer.push(&[9, short_tag(1, 1).unwrap()]));
    // Published, and broken off before the writer's own head was moved.
    writer.limit.set(0);
    memory.words[2].store(9, Relaxed);
    memory.words[3].store(short_tag(1, 2).unwrap(), Relaxed);
    memory.head.indices.head().store(4, Release);
    assert!(!writer.log(1, 3, || 9));
    writer.resume();
    assert!(writer.log(1, 3, || 9));
    let mut taken = Vec::new();
    memory.take(&mut taken);
    assert_eq!(taken, [1, 2, 3]);
}

#[test]
fn two_records_are_there_together_or_not_at_all() {
    let memory = Memory::new();
    let writer = memory.writer();
    let thread = record::thread_record(5, 7, [0; 2]);
    let event = [9, short_tag(1, 1).unwrap()];
    (0..WORDS / 2 - 1).for_each(|_| assert!(writer.push(&event)));
    assert!(!writer.push_all(&[&thread, &event], &[]));
    assert_eq!(memory.head.indices.head().load(Relaxed), WORDS as u64 - 2);
    memory.take(&mut Vec::new());
    assert!(writer.push_all(&[&thread, &event], &[]));
    assert_eq!(memory.head.indices.head().load(Relaxed), WORDS as u64 + 6);
}

#[test]
fn the_newest_events_stay_and_the_others_are_counted() {
    let memory = Memory::new();
    let writer = memory.writer();
    (0..1000).for_each(|number| put(&writer, number));
    let mut kept = Vec::new();
    memory.take(&mut kept);
    let first = 1000 - kept.len() as i64;
    assert!(kept.iter().copied().eq(first..1000));
    assert_eq!(memory.head.indices.lost(), first as u64);
    assert_eq!(memory.head.lost_last.load(Relaxed), first as u64 - 1);
}

#[test]
fn a_full_ring_loses_and_says_so_before_the_next_event() {
    let memory = Memory::new();
    let writer = memory.writer();
    let record = |number: i64| [number as u64, short_tag(1, number).unwrap()];
    let room = (0..).take_while(|number| writer.push(&record(*number))).count() as i64;
    assert_eq!(room, WORDS as i64 / 2);
    writer.lose(500);
    writer.lose(501);
    memory.take(&mut Vec::new());
    assert!(!writer.log(1, 600, || 600), "the loss has to be told first");
    assert!(writer.push(&record(600)));
    let tail = memory.head.indices.tail() as usize & (WORDS - 1);
    let words: Vec<u64> =
        memory.words[tail..tail + 8].iter().map(|word| word.load(Relaxed)).collect();
    let told = Records::new(&words).next().unwrap().unwrap();
    assert_eq!(told, Record::Loss { ticks: 600, lost: 2, first: 500, last: 501 });
}

#[test]
fn nothing_is_lost_where_the_collector_has_taken_all() {
    let memory = Memory::new();
    let writer = memory.writer();
    let mut taken = Vec::new();
    for number in 0..2 * WORDS as i64 {
        put(&writer, number);
        memory.take(&mut taken);
        assert!(writer.overwrite());
        let indices = &memory.head.indices;
        assert_eq!((indices.tail(), indices.lost()), (indices.head().load(Relaxed), 0));
    }
}

#[test]
fn none_is_there_twice_or_missing_while_old_ones_are_overwritten() {
    const EVENTS: i64 = if cfg!(miri) { 300 } else { 300_000 };
    let memory = Memory::new();
    let shared = &memory;
    let mut taken = Vec::new();
    thread::scope(|scope| {
        let writing = scope.spawn(move || {
            let writer = shared.writer();
            (0..EVENTS).for_each(|number| put(&writer, number));
        });
        while !writing.is_finished() {
            if shared.take(&mut taken) == 0 {
                thread::yield_now();
            }
        }
    });
    memory.take(&mut taken);
    assert!(taken.windows(2).all(|two| two[0] < two[1]));
    assert_eq!(taken.len() as u64 + memory.head.indices.lost(), EVENTS as u64);
}

/// Values that another process may write over any index.
const HOSTILE: [u64; 10] =
    [0, 1, 2, 3, WORDS as u64 - 1, WORDS as u64 + 1, 1 << 62, 1 << 63, u64::MAX - 1, u64::MAX];

#[test]
fn hostile_indices_neither_panic_nor_make_the_head_odd() {
    for head in HOSTILE {
        for tail in HOSTILE {
            let memory = Memory::new();
            let indices = &memory.head.indices;
            indices.head().store(head, Relaxed);
            indices.free(0, tail).unwrap();
            indices.lose_until(head);
            memory.words.iter().for_each(|word| word.store(tail, Relaxed));
            let writer = memory.writer();
            for number in 0..2 * WORDS as i64 {
                if !writer.log(1, number, || 7) {
                    let record = [7, short_tag(1, number).unwrap()];
                    if !writer.push(&record) && !writer.overwrite() {
                        writer.lose(7);
                    }
                }
                assert!(writer.head.get().is_multiple_of(2), "head {head}, tail {tail}");
                writer.suspend();
                writer.resume();
                assert!(writer.head.get().is_multiple_of(2), "head {head}, tail {tail}");
                indices.head().store(head, Relaxed);
            }
        }
    }
}

#[test]
fn a_writer_without_room_states_its_head_again() {
    let memory = Memory::new();
    let (writer, indices) = (memory.writer(), &memory.head.indices);
    let record = [7, short_tag(1, 7).unwrap()];
    assert!(writer.push(&record));
    // Another process writes another head, and the collector follows it.
    indices.head().store(1 << 40, Relaxed);
    indices.free(0, 1 << 40).unwrap();
    assert!(!writer.push(&record));
    assert_eq!(indices.head().load(Relaxed), 2);
    indices.free(1 << 40, 2).unwrap();
    assert!(writer.push(&record));
}
