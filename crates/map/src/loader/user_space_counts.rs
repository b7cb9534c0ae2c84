// SPDX-License-Identifier: Apache-2.0
//! Edges that are counted outside of the kernel.

use crate::layout::{EdgeCounts, EdgeKey, ErrorKey, Event, errors, events};
use aya::maps::{MapData, RingBuf};
use std::collections::HashMap;
use std::os::fd::{AsFd, BorrowedFd};

/// Counts since the start, of as many edges as there is room for.
pub struct EdgeTotals {
    max_edges: usize,
    edges: HashMap<EdgeKey, EdgeCounts>,
    errors: HashMap<ErrorKey, u64>,
    /// Updates that were added to the edge `other`.
    pub folded: u64,
}

impl EdgeTotals {
    pub fn new(max_edges: u32) -> Self {
        let edges = HashMap::from([(EdgeKey::OTHER, EdgeCounts::EMPTY)]);
        Self { max_edges: max_edges as usize, edges, errors: HashMap::new(), folded: 0 }
    }

    pub fn add(&mut self, key: &EdgeKey, counts: &EdgeCounts) {
        let key = self.place(key);
        self.edges.entry(key).or_insert(EdgeCounts::EMPTY).add(counts);
    }

    fn add_error(&mut self, key: &EdgeKey, kind: u32, number: i32) {
        let key = ErrorKey { edge: self.place_of(key), kind, number: number.unsigned_abs() };
        *self.errors.entry(key).or_default() += 1;
    }

    /// The edge itself, or `other` if there is no room.
    fn place(&mut self, key: &EdgeKey) -> EdgeKey {
        if self.edges.contains_key(key) || self.edges.len() <= self.max_edges {
            return *key;
        }
        self.folded += 1;
        EdgeKey::OTHER
    }

    /// The edge that has what was counted for a key.
    pub fn place_of(&self, key: &EdgeKey) -> EdgeKey {
        if self.edges.contains_key(key) { *key } else { EdgeKey::OTHER }
    }

    pub fn edges(&self) -> Vec<(EdgeKey, EdgeCounts)> {
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
        let mut totals = EdgeTotals::new(1);
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
        totals.count(&event(events::OPENED, 0, 81));
        let edges: HashMap<_, _> = totals.edges().into_iter().collect();
        let counts = edges[&event(0, 0, 80).key];
        assert_eq!((counts.opened, counts.closed), (1, 1));
        assert_eq!((counts.bytes_sent, counts.bytes_received), (100, 24));
        assert_eq!((counts.packets_sent, counts.packets_received), (1, 1));
        assert_eq!((edges[&EdgeKey::OTHER].opened, totals.folded), (1, 1));
        let mut errors: Vec<_> = totals.errors().map(|(key, _)| (key.kind, key.number)).collect();
        errors.sort_unstable();
        assert_eq!(errors, [(0, 111), (3, 111)]);
    }
}
