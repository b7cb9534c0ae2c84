// SPDX-License-Identifier: Apache-2.0
//! As tests/log/programs/lines.c.

use tare_log::{Channel, Options, Policy};

fn main() {
    let numbers = Channel::open("numbers");
    let options = Options { policy: Policy::Overwrite, ..Options::default() };
    let texts = Channel::open_with("texts", options);
    println!("ready");
    for _ in std::io::stdin().lines() {
        for number in 0..64 {
            numbers.log(number);
            numbers.log(number << 46);
            texts.bytes(&[7; 4096][..64 * number as usize]);
        }
        Channel::open("others").close();
        println!("done");
    }
}
