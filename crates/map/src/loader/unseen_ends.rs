// SPDX-License-Identifier: Apache-2.0
//! Ends of connections that no program saw. A kernel may run no tracing program while certain tasks
//! are interrupted; then neither the change of state nor the end of the socket is reported, and the
//! record of the connection is freed with its socket. Edges have such connections as open, but fewer
//! records exist.

use crate::layout::{EdgeCounts, EdgeKey};
use std::collections::{HashMap, HashSet};

/// Connections that have a record.
pub struct OpenByEdge {
    pub numbers: HashMap<EdgeKey, u64>,
    /// Where they were counted; everywhere if there is no set.
    pub namespaces: Option<HashSet<u32>>,
}

impl OpenByEdge {
    /// None if the edge's namespace was not looked at.
    fn of(&self, key: &EdgeKey) -> Option<u64> {
        let is_known = self.namespaces.as_ref().is_none_or(|all| all.contains(&key.netns));
        is_known.then(|| self.numbers.get(key).copied().unwrap_or(0))
    }
}

/// The number of ends by edge, since the start.
#[derive(Default)]
pub struct UnseenEnds(HashMap<EdgeKey, u64>);

impl UnseenEnds {
    pub fn total(&self) -> u64 {
        self.0.values().sum()
    }

    pub fn of(&self, key: &EdgeKey) -> u64 {
        self.0.get(key).copied().unwrap_or(0)
    }

    /// The ends of an edge that leaves count as ends of the edge `other`.
    pub fn fold(&mut self, key: &EdgeKey) {
        if let Some(number) = self.0.remove(key) {
            *self.0.entry(EdgeKey::OTHER).or_default() += number;
        }
    }

    /// What two passes agree in: a connection that moved to another edge during one pass seems to be
    /// missing there.
    pub fn find(&mut self, passes: [&HashMap<EdgeKey, u64>; 2]) {
        for (key, number) in passes[0] {
            let number = passes[1].get(key).map_or(0, |other| *number.min(other));
            if number > 0 {
                let known = self.0.entry(*key).or_default();
                *known = number.max(*known);
            }
        }
    }
}

/// How many ends are missing at least. What is `open` was counted after all that is in `before`, and
/// before all that is in `after`.
pub fn missing(
    before: &[(EdgeKey, EdgeCounts)],
    open: &OpenByEdge,
    after: &[(EdgeKey, EdgeCounts)],
) -> HashMap<EdgeKey, u64> {
    let after: HashMap<_, _> = after.iter().map(|(key, counts)| (key, counts)).collect();
    let of_edge = |(key, counts): &(EdgeKey, EdgeCounts)| {
        let later = after.get(key)?;
        let closed_meanwhile = later.closed.wrapping_sub(counts.closed) as i64;
        // Connections that other edges got.
        let moved = (counts.opened.wrapping_sub(later.opened) as i64).max(0);
        let records = open.of(key)? as i64;
        let number = counts.active() - records - closed_meanwhile - moved;
        (number > 0).then_some((*key, number as u64))
    };
    before.iter().filter_map(of_edge).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const EDGE: EdgeKey = EdgeKey { port: 80, ..EdgeKey::OTHER };

    fn counts(found: u64, opened: u64, closed: u64) -> [(EdgeKey, EdgeCounts); 1] {
        [(EDGE, EdgeCounts { found, opened, closed, ..EdgeCounts::EMPTY })]
    }

    fn found(before: [u64; 3], open: u64, after: [u64; 3]) -> Option<u64> {
        let [before, after] =
            [before, after].map(|[found, opened, closed]| counts(found, opened, closed));
        let numbers = if open == 0 { HashMap::new() } else { HashMap::from([(EDGE, open)]) };
        let of = |namespaces| OpenByEdge { numbers: numbers.clone(), namespaces };
        let elsewhere = of(Some(HashSet::from([EDGE.netns + 1])));
        assert!(missing(&before, &elsewhere, &after).is_empty(), "nobody looked there");
        let all = missing(&before, &of(None), &after);
        let there = of(Some(HashSet::from([EDGE.netns])));
        assert_eq!(missing(&before, &there, &after), all);
        all.get(&EDGE).copied()
    }

    #[test]
    fn connections_without_a_record_have_ended() {
        assert_eq!(found([1, 9, 4], 6, [1, 9, 4]), None);
        assert_eq!(found([1, 9, 4], 4, [1, 9, 4]), Some(2));
        assert_eq!(found([1, 9, 4], 0, [1, 9, 4]), Some(6));
    }

    #[test]
    fn what_changes_meanwhile_is_never_missing() {
        // Two closed, perhaps before their records were counted; three opened.
        assert_eq!(found([0, 9, 4], 3, [0, 12, 6]), None);
        assert_eq!(found([0, 9, 4], 8, [0, 12, 4]), None);
        // One moved to another edge.
        assert_eq!(found([0, 9, 4], 4, [0, 8, 4]), None);
        // More connections left than opened until now: others were counted elsewhere.
        assert_eq!(found([0, u64::MAX, 0], 0, [0, u64::MAX, 0]), None);
    }

    #[test]
    fn both_passes_must_agree() {
        let mut ends = UnseenEnds::default();
        let pass = |number| HashMap::from([(EDGE, number)]);
        ends.find([&pass(3), &pass(2)]);
        ends.find([&pass(9), &HashMap::new()]);
        ends.find([&pass(1), &pass(1)]);
        assert_eq!((ends.of(&EDGE), ends.of(&EdgeKey::OTHER), ends.total()), (2, 0, 2));
    }
}
