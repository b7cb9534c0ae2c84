// SPDX-License-Identifier: Apache-2.0
//! What the programs of one user may take of a collector that other users need as well.

use super::descriptor_limit::DescriptorLimit;
use super::memory_limit;
use crate::procfs;
use std::collections::HashMap;

/// Descriptors and mappings that the collector keeps for itself, unless it has few.
const RESERVE: u64 = 1_000;

/// Of the memory that there is, programs of other users can make a collector allocate one part in so
/// many.
const MEMORY: u64 = 4;

/// What programs take, or what there is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Resources {
    pub descriptors: u64,
    pub mappings: u64,
    pub bytes: u64,
}

impl Resources {
    pub fn plus(self, other: Self) -> Self {
        self.with(other, u64::saturating_add)
    }

    fn minus(self, other: Self) -> Self {
        self.with(other, u64::saturating_sub)
    }

    fn with(self, other: Self, of: fn(u64, u64) -> u64) -> Self {
        Self {
            descriptors: of(self.descriptors, other.descriptors),
            mappings: of(self.mappings, other.mappings),
            bytes: of(self.bytes, other.bytes),
        }
    }
}

/// Another user gets no more of anything than is left for all others, so that something is left
/// however many users there are. The collector's own user gets all that is left; its programs wait
/// to be received while there are no descriptors.
pub struct ResourceQuotas {
    whole: Resources,
    own: Option<u32>,
    held: HashMap<u32, Resources>,
}

impl ResourceQuotas {
    /// What this process may have.
    pub fn of_this_process() -> Self {
        let most = |all: u64| all - RESERVE.min(all / 4);
        let whole = Resources {
            descriptors: most(DescriptorLimit::get().map_or(1 << 10, DescriptorLimit::end)),
            mappings: most(procfs::most_mappings()),
            bytes: memory_limit::most() / MEMORY,
        };
        Self { whole, own: procfs::own_user(), held: HashMap::new() }
    }

    /// Takes `more` for a program of this user, or says what there is too little of.
    pub fn take(&mut self, user: u32, more: Resources) -> Result<(), &'static str> {
        let held = self.of(user).plus(more);
        let all = self.held.values().fold(more, |sum, held| sum.plus(*held));
        let needed = if Some(user) == self.own { all } else { all.plus(held) };
        let lacking = |of: fn(Resources) -> u64| of(more) > 0 && of(needed) > of(self.whole);
        if Some(user) != self.own && lacking(|amount| amount.descriptors) {
            return Err("file descriptors");
        }
        if lacking(|amount| amount.mappings) {
            return Err("memory mappings");
        }
        if lacking(|amount| amount.bytes) {
            return Err("bytes of memory");
        }
        self.held.insert(user, held);
        Ok(())
    }

    /// What a program had that has ended.
    pub fn give_back(&mut self, user: u32, less: Resources) {
        self.held.insert(user, self.of(user).minus(less));
    }

    fn of(&self, user: u32) -> Resources {
        self.held.get(&user).copied().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OWN: u32 = 7;

    fn mappings(mappings: u64) -> Resources {
        Resources { mappings, ..Resources::default() }
    }

    fn quotas() -> ResourceQuotas {
        ResourceQuotas { whole: mappings(1_000), own: Some(OWN), held: HashMap::new() }
    }

    /// As many as a user gets.
    fn all(quotas: &mut ResourceQuotas, user: u32) -> u64 {
        (0..).take_while(|_| quotas.take(user, mappings(1)).is_ok()).count() as u64
    }

    #[test]
    fn each_user_gets_what_is_left_for_all_others() {
        let mut quotas = quotas();
        assert_eq!([1, 2, 3].map(|user| all(&mut quotas, user)), [500, 250, 125]);
        assert_eq!(all(&mut quotas, OWN), 125);
        assert_eq!(quotas.take(4, mappings(1)), Err("memory mappings"));
        assert_eq!(quotas.take(4, mappings(0)), Ok(()));
        quotas.give_back(1, mappings(500));
        assert_eq!(all(&mut quotas, 4), 250);
    }

    #[test]
    fn own_user_gets_everything() {
        assert_eq!(all(&mut quotas(), OWN), 1_000);
    }
}
