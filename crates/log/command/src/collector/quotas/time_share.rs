// SPDX-License-Identifier: Apache-2.0
//! How long the programs of each user are served in a turn, so that no program waits long for the
//! next turn.

use crate::procfs;
use std::collections::HashMap;
use std::time::{Duration, Instant};

/// Of a turn: longer than it takes to compress some blocks.
const SHARE: Duration = Duration::from_millis(20);
/// Of a turn, for all users but the collector's own together, however many there are.
const OTHERS: Duration = Duration::from_millis(50);

pub struct TimeShares {
    each: Duration,
    others: Duration,
    own: Option<u32>,
    spent: HashMap<u32, Duration>,
}

impl Default for TimeShares {
    fn default() -> Self {
        Self::of(SHARE, OTHERS)
    }
}

impl TimeShares {
    pub fn of(each: Duration, others: Duration) -> Self {
        Self { each, others, own: procfs::own_user(), spent: HashMap::new() }
    }

    /// All users have their whole share again.
    pub fn renew(&mut self) {
        self.spent.clear();
    }

    /// When the share of this user ends that begins now; `None` where it has ended.
    pub fn end(&self, user: u32, now: Instant) -> Option<Instant> {
        let spent = self.spent.get(&user).copied().unwrap_or_default();
        let of_others = || {
            let others = self.spent.iter().filter(|(other, _)| Some(**other) != self.own);
            self.others.saturating_sub(others.map(|(_, spent)| *spent).sum())
        };
        let most = if Some(user) == self.own { Duration::MAX } else { of_others() };
        let left = self.each.saturating_sub(spent).min(most);
        (!left.is_zero()).then(|| now + left)
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
    fn share_of_a_user_ends_and_comes_again() {
        let (mut shares, now) =
            (TimeShares { own: Some(0), ..TimeShares::default() }, Instant::now());
        assert_eq!(shares.end(1, now), Some(now + SHARE));
        shares.spent.insert(1, SHARE / 4);
        assert_eq!(shares.end(1, now), Some(now + SHARE * 3 / 4));
        shares.spent.insert(1, SHARE);
        assert_eq!((shares.end(1, now), shares.end(2, now)), (None, Some(now + SHARE)));
        shares.renew();
        assert_eq!(shares.end(1, now), Some(now + SHARE));
    }

    #[test]
    fn many_users_have_one_share_of_a_turn() {
        let (mut shares, now) =
            (TimeShares { own: Some(0), ..TimeShares::default() }, Instant::now());
        shares.spent.extend((1..=4).map(|user| (user, OTHERS / 5)));
        assert_eq!(shares.end(5, now), Some(now + OTHERS / 5));
        shares.spent.insert(5, OTHERS / 5);
        assert_eq!((shares.end(6, now), shares.end(1, now)), (None, None));
        assert_eq!(shares.end(0, now), Some(now + SHARE), "the collector's own user");
    }
}
