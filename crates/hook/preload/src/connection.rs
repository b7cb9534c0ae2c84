// SPDX-License-Identifier: Apache-2.0
use core::sync::atomic::Ordering::Relaxed;
use core::sync::atomic::{AtomicU32, AtomicU64};
use tare_hook_segment::{Direction, ROOT};

/// What is kept of a stream connection. Two threads that read one connection at the same time
/// do not know themselves whose bytes come first; then a split keyword may be missed.
#[derive(Default)]
pub struct Connection {
    flows: [Flow; 2],
    blocked: AtomicU32,
}

/// One direction of a connection, or one datagram.
#[derive(Default)]
pub struct Flow {
    /// Bytes so far.
    position: AtomicU64,
    /// State of the automaton, and above it the low half of the generation it belongs to.
    state: AtomicU64,
    /// What the first bytes looked like (`http`).
    pub http: AtomicU32,
}

impl Connection {
    #[inline]
    pub fn flow(&self, direction: Direction) -> &Flow {
        &self.flows[direction as usize]
    }

    #[inline]
    pub fn is_blocked(&self) -> bool {
        self.blocked.load(Relaxed) != 0
    }

    pub fn set_blocked(&self) {
        self.blocked.store(1, Relaxed);
    }
}

impl Flow {
    #[inline]
    pub fn position(&self) -> u64 {
        self.position.load(Relaxed)
    }

    /// The state to go on from under `generation`: the root if the last bytes were searched
    /// under another, or not at all.
    #[inline]
    pub fn state(&self, generation: u64) -> u32 {
        let word = self.state.load(Relaxed);
        if word >> 32 == generation & u64::from(u32::MAX) { word as u32 } else { ROOT }
    }

    /// `length` bytes went by, and left the automaton of `generation` in `state`.
    #[inline]
    pub fn advance(&self, length: usize, generation: u64, state: u32) {
        self.state.store(generation << 32 | u64::from(state), Relaxed);
        self.position.fetch_add(length as u64, Relaxed);
    }

    /// Becomes like `other`.
    pub fn copy(&self, other: &Self) {
        self.position.store(other.position.load(Relaxed), Relaxed);
        self.state.store(other.state.load(Relaxed), Relaxed);
        self.http.store(other.http.load(Relaxed), Relaxed);
    }

    /// `length` bytes went by unsearched: no keyword goes across them.
    pub fn skip(&self, length: usize) {
        self.advance(length, 0, ROOT);
    }
}

// SAFETY: atomics only.
unsafe impl tare_interpose::Connection for Connection {
    fn reset(&self) {
        self.blocked.store(0, Relaxed);
        for flow in &self.flows {
            flow.position.store(0, Relaxed);
            flow.state.store(0, Relaxed);
            flow.http.store(0, Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_is_good_for_its_generation_only() {
        let flow = Flow::default();
        flow.advance(10, 3, 77);
        assert_eq!((flow.state(3), flow.state(4), flow.position()), (77, ROOT, 10));
        flow.skip(5);
        assert_eq!((flow.state(3), flow.position()), (ROOT, 15));
    }
}
