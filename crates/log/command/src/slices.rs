// SPDX-License-Identifier: Apache-2.0
//! How long the programs of each user are served in a turn, so that no program waits long for the
//! next turn.

use std::collections::HashMap;
use std::time::{Duration, Instant};

/// Of a turn: longer than it takes to compress some blocks.
const SLICE: Duration = Duration::from_millis(20);

pub struct Slices {
    each: Duration,
    spent: HashMap<u32, Duration>,
}

impl Default for Slices {
    fn default() -> Self {
        Self::of(SLICE)
    }
}

impl Slices {
    pub fn of(each: Duration) -> Self {
        Self { each, spent: HashMap::new() }
    }

    /// All users have their whole slice again.
    pub fn renew(&mut self) {
        self.spent.clear();
    }

    /// When the slice of this user ends that begins now; `None` where it has ended.
    pub fn end(&self, user: u32, now: Instant) -> Option<Instant> {
        let spent = self.spent.get(&user).copied().unwrap_or_default();
        self.each.checked_sub(spent).filter(|left| !left.is_zero()).map(|left| now + left)
    }

    /// Something was done for this user since `begin`.
    pub fn spend(&mut self, user: u32, begin: Instant) {
        *self.spent.entry(user).or_default() += begin.elapsed();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slice_of_a_user_ends_and_comes_again() {
        let (mut slices, now) = (Slices::default(), Instant::now());
        assert_eq!(slices.end(1, now), Some(now + SLICE));
        slices.spent.insert(1, SLICE / 4);
        assert_eq!(slices.end(1, now), Some(now + SLICE * 3 / 4));
        slices.spent.insert(1, SLICE);
        assert_eq!((slices.end(1, now), slices.end(2, now)), (None, Some(now + SLICE)));
        slices.renew();
        assert_eq!(slices.end(1, now), Some(now + SLICE));
    }
}
