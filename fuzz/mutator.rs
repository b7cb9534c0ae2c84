// SPDX-License-Identifier: Apache-2.0
//! Random changes of words of a live segment, by a seed.

use std::hash::{DefaultHasher, Hash, Hasher};

/// SplitMix64 (Steele et al., 2014).
pub struct Mutator(u64);

impl Mutator {
    /// The same input has the same seed.
    pub fn of(data: &[u8]) -> Self {
        let mut hasher = DefaultHasher::new();
        data.hash(&mut hasher);
        Self(hasher.finish())
    }

    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    pub fn below(&mut self, end: usize) -> usize {
        (self.next() % end as u64) as usize
    }

    /// What a word can be changed to; an index, by up to four rings of `words`.
    pub fn mutate(&mut self, word: u64, words: usize) -> u64 {
        let few = self.next() % 64;
        let half = if few.is_multiple_of(2) { 0 } else { 32 };
        match self.below(8) {
            0 => self.next(),
            1 => word ^ 1 << few,
            2 => word.wrapping_add(few).wrapping_sub(32),
            3 => word & !(0xffff_ffff << half) | (self.next() & 0xffff_ffff) << half,
            4 => word & !(0xffff_ffff << half) | few << half,
            5 => word | 0xffff_ffff << half,
            6 => word.wrapping_add(self.next() % (4 * words as u64)),
            _ => word.wrapping_sub(self.next() % (4 * words as u64)),
        }
    }
}
