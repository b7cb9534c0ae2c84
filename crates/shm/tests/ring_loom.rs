// SPDX-License-Identifier: Apache-2.0
//! Every interleaving of one producer and one consumer:
//! `RUSTFLAGS="--cfg loom" cargo test -p tare-shm --release --test ring_loom`
#![cfg(loom)]

use loom::sync::Arc;
use loom::thread;
use tare_shm::{Indices, Ring, Word};

#[test]
fn under_loom_records_are_whole_in_order_and_lost_ones_are_counted() {
    loom::model(|| {
        let memory = Arc::new((Indices::default(), [Word::new(0), Word::new(0)]));
        let producer = {
            let memory = memory.clone();
            thread::spawn(move || {
                let ring = Ring::new(&memory.0, &memory.1).unwrap();
                (1..=3).filter(|number| ring.push(&[*number, 10 * *number])).count()
            })
        };
        let ring = Ring::new(&memory.0, &memory.1).unwrap();
        let mut last = 0;
        let mut received = 0;
        let mut take = || {
            let mut out = [0; 2];
            if ring.pop(&mut out).unwrap() == 2 {
                assert!(out[0] > last, "out of order");
                assert_eq!(out[1], 10 * out[0], "torn");
                last = out[0];
                received += 1;
            }
        };
        take();
        take();
        let pushed = producer.join().unwrap();
        take();
        assert_eq!(received, pushed);
        assert_eq!(ring.lost(), 3 - pushed as u64);
    });
}
