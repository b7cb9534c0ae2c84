// SPDX-License-Identifier: Apache-2.0
//! Logs what tests/log/vector.txt says, and stays until its input ends.

use std::io::Read;
use tare_log::{Channel, Span};

fn main() -> std::io::Result<()> {
    let (numbers, texts) = (Channel::open("numbers"), Channel::open("texts"));
    let work = Span::open("work");
    let edge = 1 << 45;
    for number in [0, -1, edge - 1, -edge, edge, -edge - 1, i64::MAX, i64::MIN] {
        numbers.log(number);
    }
    for text in ["", "a", "fifteen letters", "sixteen letters!", "seventeen letters"] {
        texts.bytes(text.as_bytes());
    }
    drop(work.enter(42));
    println!("ready");
    std::io::stdin().read_to_end(&mut Vec::new()).map(drop)
}
