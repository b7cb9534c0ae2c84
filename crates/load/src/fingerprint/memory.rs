// SPDX-License-Identifier: Apache-2.0
//! Memory bandwidth, as the triad of STREAM (McCalpin 1995): a(i) = b(i) + q * c(i).

use std::hint::black_box;
use std::time::Instant;

const ARRAYS: usize = 3;
const REPETITIONS: usize = 5;

/// The best of some repetitions in bytes per second, on arrays of `bytes` in all.
pub fn triad(bytes: u64) -> f64 {
    let length = (bytes as usize / ARRAYS / size_of::<f64>()).max(1);
    let (b, c) = (vec![1.0; length], vec![2.0; length]);
    let mut a = vec![0.0; length];
    let mut best = f64::INFINITY;
    for _ in 0..REPETITIONS {
        let begun = Instant::now();
        let q = black_box(3.0);
        for ((a, b), c) in a.iter_mut().zip(&b).zip(&c) {
            *a = b + q * c;
        }
        black_box(&mut a);
        best = best.min(begun.elapsed().as_secs_f64());
    }
    (ARRAYS * length * size_of::<f64>()) as f64 / best.max(1e-9)
}
