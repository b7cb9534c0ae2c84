// SPDX-License-Identifier: Apache-2.0
//! Every interleaving of who fills a ring and who sleeps until it is filled so far:
//! `RUSTFLAGS="--cfg loom" cargo test -p tare-shm --release --test bell_loom`
#![cfg(loom)]

use loom::sync::Arc;
use loom::sync::atomic::Ordering::{Acquire, Release};
use loom::thread;
use tare_shm::{Bell, Indices};

/// Words from which on the ring is to be emptied.
const FILLED: u64 = 2;

#[test]
fn under_loom_nobody_sleeps_beside_a_ring_that_is_filled_so_far() {
    loom::model(|| {
        let memory = Arc::new((Indices::default(), Bell::default()));
        let producer = {
            let memory = memory.clone();
            thread::spawn(move || {
                let (indices, bell) = &*memory;
                let mut woken = false;
                for head in 1..=FILLED {
                    indices.head().store(head, Release);
                    woken |= head - indices.tail() >= FILLED && bell.ring();
                }
                woken
            })
        };
        let (indices, bell) = &*memory;
        bell.arm();
        let is_filled = indices.head().load(Acquire) - indices.tail() >= FILLED;
        if is_filled {
            bell.disarm();
        }
        let is_woken = producer.join().unwrap();
        assert!(is_filled || is_woken, "asleep, and nobody comes");
        // Who waits is let through by the value, whether or not it waited yet when it was rung.
        assert!(!bell.is_armed());
    });
}
