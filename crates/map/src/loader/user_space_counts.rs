// SPDX-License-Identifier: Apache-2.0
//! Edges that are counted outside of the kernel.

use crate::layout::{EdgeCounts, EdgeKey, ErrorKey, Event, errors, events};
use crate::loader::maps::{Edges, Errors};
use crate::loader::unseen_ends::UnseenEnds;
use aya::maps::{MapData, RingBuf};
use std::collections::HashMap;
use std::os::fd::{AsFd, BorrowedFd};

/// Counts since the start, of as many edges as there is room for.
pub struct EdgeTotals {
    max_edges: usize,
    /// Whether ends of TCP connections are counted: if not, all edges are idle.
    has_ends: bool,
    edges: HashMap<EdgeKey, EdgeCounts>,
    errors: HashMap<ErrorKey, u64>,
    pub unseen_ends: UnseenEnds,
    /// Updates that were added to the edge `other`.
    pub folded: u64,
    /// Idle edges that made room for others, and were added to the edge `other`.
    pub removed: u64,
    /// New edges until idle ones are looked for again.
    without_search: usize,
}

impl EdgeTotals {
    pub fn new(max_edges: u32, has_ends: bool) -> Self {
        Self {
            max_edges: max_edges as usize,
            has_ends,
            edges: HashMap::from([(EdgeKey::OTHER, EdgeCounts::EMPTY)]),
            errors: HashMap::new(),
            unseen_ends: UnseenEnds::default(),
            folded: 0,
            removed: 0,
            without_search: 0,
        }
    }

    /// Flows that are not of known edges, and errors, come last: known edges are not idle then.
    pub fn add_all(&mut self, mut edges: Edges, errors: Errors) {
        edges.sort_by_key(|(key, _)| !self.edges.contains_key(key));
        for (key, counts) in edges {
            self.add(&key, &counts);
        }
        for (key, count) in errors {
            let edge = self.place_of(&key.edge);
            *self.errors.entry(ErrorKey { edge, ..key }).or_default() += count;
        }
    }

    fn add(&mut self, key: &EdgeKey, counts: &EdgeCounts) {
        let place = self.place(key);
        let sum = self.edges.entry(place).or_insert(EdgeCounts::EMPTY);
        sum.add(counts);
        // Ends of connections that were opened when there was no room.
        let ends = sum.take_excess_ends();
        if ends > 0 {
            let other = self.edges.entry(EdgeKey::OTHER).or_insert(EdgeCounts::EMPTY);
            other.closed = other.closed.wrapping_add(ends);
        }
    }

    fn add_error(&mut self, key: &EdgeKey, kind: u32, number: i32) {
        let key = ErrorKey { edge: self.place_of(key), kind, number: number.unsigned_abs() };
        *self.errors.entry(key).or_default() += 1;
    }

    /// The edge itself, or `other` if there is no room.
    fn place(&mut self, key: &EdgeKey) -> EdgeKey {
        if self.edges.contains_key(key)
            || self.edges.len() <= self.max_edges
            || self.evict_idle_edges()
        {
            return *key;
        }
        self.folded += 1;
        EdgeKey::OTHER
    }

    /// The edge that has what was counted for a key.
    pub fn place_of(&self, key: &EdgeKey) -> EdgeKey {
        if self.edges.contains_key(key) { *key } else { EdgeKey::OTHER }
    }

    /// Adds idle edges to the edge `other`; false if there are none.
    fn evict_idle_edges(&mut self) -> bool {
        let number = (self.max_edges / 8).max(1);
        if self.without_search > 0 {
            self.without_search -= 1;
            return false;
        }
        let leaving = oldest_idle(self.edges.iter(), number, |key, counts| {
            self.has_ends && counts.active() - self.unseen_ends.of(key) as i64 != 0
        });
        if leaving.is_empty() {
            self.without_search = number;
            return false;
        }
        let mut other = self.edges.remove(&EdgeKey::OTHER).unwrap_or(EdgeCounts::EMPTY);
        for key in &leaving {
            other.add(&self.edges.remove(key).expect("it was just found"));
            self.unseen_ends.fold(key);
        }
        self.edges.insert(EdgeKey::OTHER, other);
        self.removed += leaving.len() as u64;
        let edges = std::mem::take(&mut self.edges);
        self.fold_errors(|key| !edges.contains_key(&key.edge));
        self.edges = edges;
        true
    }

    /// Adds errors to the errors of the edge `other`.
    pub fn fold_errors(&mut self, leaves: impl Fn(&ErrorKey) -> bool) {
        let leaving: Vec<_> = self.errors.extract_if(|key, _| leaves(key)).collect();
        for (key, count) in leaving {
            *self.errors.entry(ErrorKey { edge: EdgeKey::OTHER, ..key }).or_default() += count;
        }
    }

    /// Keeps what will be added to the kernel's edges later, and errors, without a limit.
    pub fn keep(&mut self, edges: Edges, errors: Errors) {
        for (key, counts) in edges {
            self.edges.entry(key).or_insert(EdgeCounts::EMPTY).add(&counts);
        }
        for (key, count) in errors {
            *self.errors.entry(key).or_default() += count;
        }
    }

    /// The edges that were kept.
    pub fn take_kept(&mut self) -> Edges {
        self.edges.drain().filter(|(_, counts)| *counts != EdgeCounts::EMPTY).collect()
    }

    pub fn edges(&self) -> Edges {
        self.edges.iter().map(|(key, counts)| (*key, *counts)).collect()
    }

    pub fn errors(&self) -> impl Iterator<Item = (ErrorKey, u64)> {
        self.errors.iter().map(|(key, count)| (*key, *count))
    }

    fn count(&mut self, event: &Event) {
        let mut counts = EdgeCounts {
            first_ns: event.time_ns,
            last_ns: event.time_ns,
            pid: event.pid,
            confidence: event.confidence,
            ..EdgeCounts::EMPTY
        };
        let mut error = None;
        match event.kind {
            events::FOUND => counts.found = 1,
            events::OPENED => counts.opened = 1,
            events::FAILED => error = Some(errors::FAILED_CONNECT),
            events::ENDED => {
                counts.closed = 1;
                error = (event.value != 0).then_some(errors::BROKEN);
            }
            events::SENT if event.value < 0 => error = Some(errors::FAILED_SEND),
            events::SENT => {
                (counts.bytes_sent, counts.packets_sent) = (event.value as u64, 1);
            }
            events::RECEIVED if event.value < 0 => error = Some(errors::FAILED_RECEIVE),
            _ => {
                (counts.bytes_received, counts.packets_received) = (event.value as u64, 1);
            }
        }
        self.add(&event.key, &counts);
        if let Some(kind) = error {
            self.add_error(&event.key, kind, event.value);
        }
    }
}

/// Of edges that are not open: those that changed longest ago, but not the edge `other`.
pub fn oldest_idle<'edges>(
    edges: impl Iterator<Item = (&'edges EdgeKey, &'edges EdgeCounts)>,
    number: usize,
    is_open: impl Fn(&EdgeKey, &EdgeCounts) -> bool,
) -> Vec<EdgeKey> {
    let is_idle =
        |(key, counts): &(&EdgeKey, &EdgeCounts)| **key != EdgeKey::OTHER && !is_open(key, counts);
    let idle = edges.filter(is_idle).map(|(key, counts)| (counts.last_ns, *key));
    let mut idle: Vec<_> = if number == 0 { Vec::new() } else { idle.collect() };
    if idle.len() > number {
        idle.select_nth_unstable(number);
        idle.truncate(number);
    }
    idle.into_iter().map(|(_, key)| key).collect()
}

/// Events on their way out of the kernel.
pub struct Stream(RingBuf<MapData>);

impl Stream {
    pub fn new(ring: RingBuf<MapData>) -> Self {
        Self(ring)
    }

    pub fn fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }

    pub fn take(&mut self, totals: &mut EdgeTotals) {
        while let Some(item) = self.0.next() {
            if item.len() >= size_of::<Event>() {
                // SAFETY: it is long enough, and plain data that may be at any address.
                let event = unsafe { item.as_ptr().cast::<Event>().read_unaligned() };
                totals.count(&event);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(kind: u32, value: i32, port: u16) -> Event {
        let key = EdgeKey { port, role: 1, ..EdgeKey::OTHER };
        Event { key, time_ns: 10, pid: 1, kind, value, confidence: 4 }
    }

    #[test]
    fn events_add_up() {
        let mut totals = EdgeTotals::new(1, true);
        for (kind, value) in [
            (events::OPENED, 0),
            (events::SENT, 100),
            (events::RECEIVED, 24),
            (events::RECEIVED, -111),
            (events::ENDED, 0),
            (events::FAILED, 111),
        ] {
            totals.count(&event(kind, value, 80));
        }
        let edges: HashMap<_, _> = totals.edges().into_iter().collect();
        let counts = edges[&event(0, 0, 80).key];
        assert_eq!((counts.opened, counts.closed), (1, 1));
        assert_eq!((counts.bytes_sent, counts.bytes_received), (100, 24));
        assert_eq!((counts.packets_sent, counts.packets_received), (1, 1));
        assert_eq!((totals.folded, totals.removed), (0, 0));
        let mut errors: Vec<_> = totals.errors().map(|(key, _)| (key.kind, key.number)).collect();
        errors.sort_unstable();
        assert_eq!(errors, [(0, 111), (3, 111)]);
    }

    fn opened_and_closed(totals: &EdgeTotals, key: &EdgeKey) -> Option<(u64, u64)> {
        let counts = totals.edges().into_iter().find(|(found, _)| found == key)?.1;
        Some((counts.opened, counts.closed))
    }

    #[test]
    fn idle_edges_make_room_and_their_counts_and_errors_stay() {
        let mut totals = EdgeTotals::new(2, true);
        let [first, second, third] = [80, 81, 82].map(|port| event(0, 0, port).key);
        for (kind, value, port) in [
            (events::OPENED, 0, 80),
            (events::ENDED, 104, 80),
            (events::OPENED, 0, 81),
            // Only the first one is idle.
            (events::OPENED, 0, 82),
        ] {
            totals.count(&event(kind, value, port));
        }
        assert_eq!(opened_and_closed(&totals, &first), None);
        assert_eq!(opened_and_closed(&totals, &second), Some((1, 0)));
        assert_eq!(opened_and_closed(&totals, &third), Some((1, 0)));
        assert_eq!(opened_and_closed(&totals, &EdgeKey::OTHER), Some((1, 1)));
        let errors: Vec<_> = totals.errors().map(|(key, count)| (key.edge, count)).collect();
        assert_eq!(errors, [(EdgeKey::OTHER, 1)]);
        assert_eq!((totals.folded, totals.removed), (0, 1));
    }

    #[test]
    fn ends_of_connections_that_had_no_room_are_those_of_the_edge_other() {
        let mut totals = EdgeTotals::new(1, true);
        let [first, second] = [80, 81].map(|port| event(0, 0, port).key);
        totals.count(&event(events::OPENED, 0, 80));
        // No room.
        totals.count(&event(events::OPENED, 0, 81));
        assert_eq!((totals.folded, totals.removed), (1, 0));
        totals.count(&event(events::ENDED, 0, 80));
        // Now there is, for the end of a connection whose opening is elsewhere.
        for _ in 0..2 {
            totals.count(&event(events::OPENED, 0, 81));
            totals.count(&event(events::ENDED, 0, 81));
        }
        totals.count(&event(events::ENDED, 0, 81));
        let counted = [first, second, EdgeKey::OTHER].map(|key| opened_and_closed(&totals, &key));
        let sums = counted.iter().flatten().fold((0, 0), |sum, n| (sum.0 + n.0, sum.1 + n.1));
        assert_eq!(sums, (4, 4));
        assert!(counted.iter().flatten().all(|(opened, closed)| opened == closed), "{counted:?}");
    }

    #[test]
    fn edges_without_known_ends_leave_by_age() {
        let mut totals = EdgeTotals::new(1, false);
        totals.count(&event(events::OPENED, 0, 80));
        totals.count(&event(events::OPENED, 0, 81));
        assert_eq!(opened_and_closed(&totals, &event(0, 0, 81).key), Some((1, 0)));
        assert_eq!(opened_and_closed(&totals, &EdgeKey::OTHER), Some((1, 0)));
    }
}
