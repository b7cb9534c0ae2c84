// SPDX-License-Identifier: Apache-2.0
//! `speed EVENTS BURSTS [wait|overwrite]`: as tests/log/programs/speed.c.

use std::thread::sleep;
use std::time::{Duration, Instant};
use tare_log::{Channel, Options, Policy};

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let number = |place: usize| words.get(place).and_then(|word| word.parse::<i64>().ok());
    let (Some(events), Some(bursts)) = (number(0), number(1)) else {
        eprintln!("speed EVENTS BURSTS [wait|overwrite]");
        std::process::exit(2);
    };
    let policy = match words.get(2).map(String::as_str) {
        Some("wait") => Policy::Wait,
        Some("overwrite") => Policy::Overwrite,
        _ => Policy::Drop,
    };
    let channel = Channel::open_with("speed", Options { policy, ..Options::default() });
    let mut next = 0;
    let mut times: Vec<f64> = (0..bursts)
        .map(|_| {
            let begin = Instant::now();
            for _ in 0..events {
                channel.log(next);
                next += 1;
            }
            let time = begin.elapsed().as_nanos() as f64 / events as f64;
            if policy != Policy::Wait {
                sleep(Duration::from_millis(5));
            }
            time
        })
        .collect();
    times.sort_by(f64::total_cmp);
    let (Some(least), mean) = (times.first(), times.iter().sum::<f64>() / times.len() as f64)
    else {
        return;
    };
    println!("min {least:.2} median {:.2} mean {mean:.2} ns", times[times.len() / 2]);
}
