// SPDX-License-Identifier: Apache-2.0
//! What is kept of EPOLLONESHOT: whether an event is to come, and the data of other descriptors.

use core::sync::atomic::Ordering::{AcqRel, Relaxed};
use core::sync::atomic::{AtomicU32, AtomicU64};

pub const ONCE: u32 = libc::EPOLLONESHOT as u32;

/// Whether an event is to come: `UNKNOWN` for a connection that was linked in a set, until the
/// program asks for an event.
#[derive(Debug)]
pub struct OneShotState(AtomicU32);

const UNKNOWN: u32 = 0;
const ARMED: u32 = 1;
const REPORTED: u32 = 2;

impl OneShotState {
    pub const fn new() -> Self {
        Self(AtomicU32::new(UNKNOWN))
    }

    pub fn forget(&self) {
        self.0.store(UNKNOWN, Relaxed);
    }

    pub fn arm(&self) {
        self.0.store(ARMED, Relaxed);
    }

    pub fn is_known(&self) -> bool {
        self.0.load(Relaxed) != UNKNOWN
    }

    pub fn is_reported(&self) -> bool {
        self.0.load(Relaxed) == REPORTED
    }

    /// Whether the caller reports the event.
    pub fn take(&self) -> bool {
        self.0.compare_exchange(ARMED, REPORTED, AcqRel, Relaxed).is_ok()
    }
}

/// Data of other descriptors in a set, as bits of a Bloom filter of two hashes.
#[derive(Debug)]
pub struct UserDataFilter([AtomicU64; WORDS]);

const WORDS: usize = 16;

impl UserDataFilter {
    pub const fn new() -> Self {
        Self([const { AtomicU64::new(0) }; WORDS])
    }

    pub fn clear(&self) {
        self.0.iter().for_each(|word| word.store(0, Relaxed));
    }

    fn bits(data: u64) -> [(usize, u64); 2] {
        let hash = (data ^ data >> 29).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        [hash >> 54, hash >> 44 & 0x3ff].map(|bit| (bit as usize / 64, 1 << (bit % 64)))
    }

    pub fn add(&self, data: u64) {
        for (word, bit) in Self::bits(data) {
            self.0[word].fetch_or(bit, Relaxed);
        }
    }

    /// False if no other descriptor has this data.
    pub fn may_have(&self, data: u64) -> bool {
        Self::bits(data).iter().all(|(word, bit)| self.0[*word].load(Relaxed) & bit != 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_thread_takes_the_event() {
        let one_shot = OneShotState::new();
        assert!(!one_shot.is_known() && !one_shot.take());
        one_shot.arm();
        assert!(one_shot.is_known() && !one_shot.is_reported());
        assert!(one_shot.take() && !one_shot.take() && one_shot.is_reported());
        one_shot.forget();
        assert!(!one_shot.is_known() && !one_shot.take());
    }

    #[test]
    fn data_of_others_is_found_and_hardly_any_else() {
        let others = UserDataFilter::new();
        (0..10).for_each(|data| others.add(data));
        assert!((0..10).all(|data| others.may_have(data)));
        let found = (10..10_010).filter(|data| others.may_have(*data)).count();
        assert!(found < 20, "{found} of 10,000");
        others.clear();
        assert!((0..10_010).all(|data| !others.may_have(data)));
    }
}
