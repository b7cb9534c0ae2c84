// SPDX-License-Identifier: Apache-2.0
//! What another process can write into a segment besides the rules: its header, the
//! counters and words of a ring, events, and the variable that names the segments.
#![no_main]

use arbitrary::{Arbitrary, Unstructured};
use libfuzzer_sys::fuzz_target;
use std::sync::atomic::AtomicU64;
use tare_hook_segment::{EVENT_WORDS, Event, Handover};
use tare_shm::{Header, Indices, Ring};

const INDICES_WORDS: usize = size_of::<Indices>() / 8;

#[repr(C, align(128))]
struct Memory([u64; INDICES_WORDS]);

#[derive(Arbitrary, Debug)]
struct Input<'a> {
    header: [u64; 8],
    indices: [u64; INDICES_WORDS],
    words: [u64; 64],
    record: Vec<u64>,
    room: u8,
    variable: &'a [u8],
}

fuzz_target!(|data: &[u8]| {
    // Not by the macro: it refuses what is shorter than a whole Input, and a fuzzer that
    // begins with nothing never gets that far. What is missing here is zero.
    let Ok(input) = Input::arbitrary_take_rest(Unstructured::new(data)) else { return };
    // SAFETY: a header is made of integers alone, and has this size.
    let header: Header = unsafe { std::mem::transmute_copy(&input.header) };
    let _ = header.check(1, 1, 4096);

    if let Some(handover) = Handover::parse(input.variable) {
        assert_eq!(Handover::parse(handover.to_string().as_bytes()), Some(handover));
    }

    let memory = Memory(input.indices);
    // SAFETY: Indices holds nothing but atomics, and has this size and alignment.
    let indices = unsafe { &*std::ptr::from_ref(&memory).cast::<Indices>() };
    let words = input.words.map(AtomicU64::new);
    let ring = Ring::new(indices, &words).expect("64 is a power of two");
    ring.push(&input.record);
    let mut out = vec![0; usize::from(input.room)];
    if let Ok(length) = ring.pop(&mut out) {
        assert!(length <= out.len() && length <= words.len());
        for record in out[..length].as_chunks::<EVENT_WORDS>().0 {
            if let Some(event) = Event::decode(record) {
                assert_eq!(Event::decode(&event.encode()), Some(event));
            }
        }
    } else {
        assert_eq!(ring.pop(&mut [0]), Ok(0));
    }
});
