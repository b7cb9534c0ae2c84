// SPDX-License-Identifier: Apache-2.0
//! Every interleaving of a producer that overwrites and a consumer that copies first and frees
//! later, as `tare log` does it:
//! `RUSTFLAGS="--cfg loom" cargo test -p tare-shm --release --test overwriting_loom`
#![cfg(loom)]

use loom::sync::Arc;
use loom::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use loom::sync::atomic::fence;
use loom::thread;
use tare_shm::{Indices, Word};

/// Words of the ring, each of them a record: its number.
const WORDS: u64 = 2;
const RECORDS: u64 = 3;

type Memory = (Indices, [Word; WORDS as usize]);

fn produce((indices, words): &Memory) {
    for head in 0..RECORDS {
        while head - indices.tail() >= WORDS {
            let from = indices.tail();
            if indices.free(from, from + 1).is_ok() {
                indices.lose();
                // Who reads what is written now sees where the tail is.
                fence(Release);
            }
        }
        words[(head % WORDS) as usize].store(head + 1, Relaxed);
        indices.head().store(head + 1, Release);
    }
}

/// What is there, and how many of those the producer counted as lost as well.
fn consume((indices, words): &Memory) -> (Vec<u64>, u64) {
    let tail = indices.tail();
    let head = indices.head().load(Acquire);
    let mut copy: Vec<u64> =
        (tail..head.max(tail)).map(|at| words[(at % WORDS) as usize].load(Relaxed)).collect();
    fence(Acquire);
    let overtaken = (indices.tail() - tail).min(copy.len() as u64);
    copy.drain(..overtaken as usize);
    let mut at = tail + overtaken;
    let mut twice = 0;
    while let Err(now) = indices.free(at, head.max(at)) {
        twice += now.min(head) - at;
        if now >= head {
            break;
        }
        at = now;
    }
    (copy, twice)
}

#[test]
fn under_loom_each_record_is_taken_once_or_counted() {
    loom::model(|| {
        let memory: Arc<Memory> = Arc::default();
        let producer = {
            let memory = memory.clone();
            thread::spawn(move || produce(&memory))
        };
        let (mut taken, mut twice) = consume(&memory);
        producer.join().unwrap();
        let (rest, more) = consume(&memory);
        taken.extend(rest);
        twice += more;
        assert!(taken.windows(2).all(|two| two[0] < two[1]), "{taken:?}");
        assert_eq!(taken.len() as u64 + memory.0.lost() - twice, RECORDS);
        assert_eq!(taken.last(), Some(&RECORDS));
    });
}
