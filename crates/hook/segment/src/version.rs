// SPDX-License-Identifier: Apache-2.0
use crate::{EVENT_WORDS, Symbol, Unseen, control, rules, shared};

/// To be raised where what stands in a segment changes its meaning and not its place.
const MEANING: usize = 2;

/// Version of both layouts, made from them: a library and a tare-hook of different builds
/// work together only if they agree on every place and every function.
pub const VERSION: u32 = version(
    &[&[MEANING, EVENT_WORDS], control::LAYOUT, rules::LAYOUT, shared::LAYOUT],
    Symbol::ALL,
    Unseen::ALL,
);

const fn version(layouts: &[&[usize]], symbols: &[Symbol], unseen: &[Unseen]) -> u32 {
    let mut hash = 0xcbf2_9ce4_8422_2325;
    let mut place = 0;
    while place < layouts.len() {
        hash = numbers(hash, layouts[place]);
        place += 1;
    }
    place = 0;
    while place < symbols.len() {
        hash = text(hash, symbols[place].name());
        place += 1;
    }
    place = 0;
    while place < unseen.len() {
        hash = text(hash, unseen[place].name());
        place += 1;
    }
    (hash ^ hash >> 32) as u32
}

const fn numbers(mut hash: u64, numbers: &[usize]) -> u64 {
    let mut place = 0;
    while place < numbers.len() {
        hash = step(hash, numbers[place] as u64);
        place += 1;
    }
    step(hash, numbers.len() as u64)
}

const fn text(mut hash: u64, text: &str) -> u64 {
    let mut place = 0;
    while place < text.len() {
        hash = step(hash, text.as_bytes()[place] as u64);
        place += 1;
    }
    step(hash, text.len() as u64)
}

/// FNV-1a, in words.
const fn step(hash: u64, word: u64) -> u64 {
    (hash ^ word).wrapping_mul(0x100_0000_01b3)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_place_and_every_name_counts() {
        let (symbols, unseen) = (&[Symbol::read, Symbol::recv], Unseen::ALL);
        let all = [
            version(&[&[1, 2], &[3]], symbols, unseen),
            version(&[&[2, 1], &[3]], symbols, unseen),
            version(&[&[1], &[2, 3]], symbols, unseen),
            version(&[&[1, 2], &[1 << 40]], symbols, unseen),
            version(&[&[1, 2], &[3]], &[Symbol::recv, Symbol::read], unseen),
            version(&[&[1, 2], &[3]], &symbols[..1], unseen),
            version(&[&[1, 2], &[3]], symbols, &unseen[1..]),
        ];
        for (place, version) in all.iter().enumerate() {
            assert!(!all[..place].contains(version), "{place}");
        }
    }
}
