// SPDX-License-Identifier: Apache-2.0
//! Which words of which ring have come: who takes over from a collector that died writes again
//! what that had not freed, and one process may be in several files.

use std::collections::{BTreeMap, HashMap};

/// A process and its ring.
pub type Ring = (usize, u32);

/// By ring, ranges of words that do not touch: from where to where.
#[derive(Default)]
pub struct SeenRanges(HashMap<Ring, BTreeMap<u64, u64>>);

impl SeenRanges {
    /// Whether words before this one of a ring, and behind all that have come, have not.
    pub fn lacks(&self, ring: Ring, from: u64) -> bool {
        let last = self.0.get(&ring).and_then(BTreeMap::last_key_value);
        last.is_some_and(|(_, end)| *end < from)
    }

    /// Whether the words have all come before; from now on they have. What stood in no ring has
    /// no words, and comes once.
    pub fn add(&mut self, ring: Ring, from: u64, to: u64) -> bool {
        if from >= to {
            return false;
        }
        let ranges = self.0.entry(ring).or_default();
        let before = ranges.range(..=from).next_back().map(|(begin, end)| (*begin, *end));
        let (begin, end) = before.filter(|(_, end)| *end >= from).unwrap_or((from, from));
        if to <= end {
            return true;
        }
        let mut end = to;
        while let Some((&next, &until)) = ranges.range(begin..=end).next() {
            ranges.remove(&next);
            end = end.max(until);
        }
        ranges.insert(begin, end);
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_have_come_where_all_of_them_have() {
        let mut seen = SeenRanges::default();
        let mut add = |ring, from, to| seen.add((0, ring), from, to);
        let unseen = [(1, 50, 60), (1, 0, 10), (1, 10, 20), (1, 55, 70), (2, 50, 60), (1, 15, 51)];
        assert!(unseen.iter().all(|(ring, from, to)| !add(*ring, *from, *to)));
        assert!([(0, 70), (5, 15), (69, 70)].iter().all(|(from, to)| add(1, *from, *to)));
        assert!(!add(1, 69, 71) && !add(2, 49, 60) && add(2, 49, 60));
        assert!(!add(3, 0, 0) && !add(3, 0, 0));
    }
}
