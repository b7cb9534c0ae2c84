// SPDX-License-Identifier: Apache-2.0
//! encoder_benchmark [CODEC]: how fast events become the content of blocks, on one core, and how small.
//! Copying them out of another process's ring is not in it.

use std::time::Instant;
use tare_clock::ticks;
use tare_log_file::{Codec, Codecs, Encoder};
use tare_log_segment::record::short_tag;

const EVENTS: usize = 4 << 20;
const BATCH: usize = 1 << 17;

/// Words of a ring whose events have the time at which this asks for them.
fn trace(mut event: impl FnMut(usize) -> (u16, i64)) -> Vec<u64> {
    let mut words = Vec::with_capacity(2 * EVENTS);
    for number in 0..EVENTS {
        let (channel, payload) = event(number);
        words.extend([ticks(), short_tag(channel, payload).unwrap_or(1)]);
    }
    words
}

fn main() {
    let wanted = std::env::args().nth(1);
    let mut state = 1u64;
    let mut random = move || {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (state >> 18) as i64
    };
    // As a recursion of depth 10 logs its entries and exits.
    let recursion = trace(|number| match number % 20 {
        entry @ 0..10 => (1, 10 - entry as i64),
        exit => (2, exit as i64 - 9),
    });
    let traces = [
        ("one number", trace(|_| (1, 42))),
        ("counting", trace(|number| (1, number as i64))),
        ("recursion", recursion),
        ("random", trace(|_| (1, random() >> 1))),
    ];
    for (name, words) in &traces {
        for (codec_name, codec) in Codec::ALL {
            if wanted.as_deref().is_some_and(|wanted| wanted != *codec_name) {
                continue;
            }
            let codecs = Codecs { usual: *codec, ..Codecs::default() };
            let mut encoder = Encoder::default();
            let mut best = f64::INFINITY;
            let mut bytes = 0;
            for _ in 0..5 {
                let begin = Instant::now();
                let packed = words.chunks(BATCH).map(|words| encoder.pack(words, &codecs));
                bytes = packed.map(|packed| packed.map_or(0, |packed| packed.stored.len())).sum();
                best = best.min(begin.elapsed().as_secs_f64());
            }
            let events = EVENTS as f64;
            println!(
                "{name:10} {codec_name:6} {:6.1} million/s  {:5.2} bytes an event",
                events / best / 1e6,
                bytes as f64 / events
            );
        }
    }
}
