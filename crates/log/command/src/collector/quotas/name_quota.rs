// SPDX-License-Identifier: Apache-2.0
//! How many bytes the file gets of what programs of another user are called: names of channels,
//! command lines, and lists of channels that lost events. Without a limit, a program that changes
//! its channels all the time would fill the disk and log nothing.

use crate::procfs;
use std::collections::HashMap;
use std::time::Instant;

/// At once: some programs with all channels that there can be, under names of usual length.
pub const MOST: u64 = 32 << 20;
/// What a user gets again.
const PER_SECOND: u64 = 64 << 10;

/// What may be written of a program now.
pub struct NameQuota {
    bytes: u64,
    /// Names that were not written.
    pub left_out: usize,
}

impl NameQuota {
    /// For the collector's own user.
    pub fn unlimited() -> Self {
        Self { bytes: u64::MAX, left_out: 0 }
    }

    pub fn has(&self, bytes: usize) -> bool {
        bytes as u64 <= self.bytes
    }

    pub fn take(&mut self, bytes: usize) {
        self.bytes = self.bytes.saturating_sub(bytes as u64);
    }
}

pub struct NameQuotas {
    own: Option<u32>,
    /// By user: bytes that are left, and when they were counted.
    left: HashMap<u32, (u64, Instant)>,
}

impl Default for NameQuotas {
    fn default() -> Self {
        Self { own: procfs::own_user(), left: HashMap::new() }
    }
}

impl NameQuotas {
    pub fn of(&self, user: u32, now: Instant) -> NameQuota {
        if Some(user) == self.own {
            return NameQuota::unlimited();
        }
        let (left, since) = self.left.get(&user).copied().unwrap_or((MOST, now));
        let more = now.duration_since(since).as_millis() as u64 * PER_SECOND / 1_000;
        NameQuota { bytes: left.saturating_add(more).min(MOST), left_out: 0 }
    }

    /// Some of the quota has been used since `now`.
    pub fn keep(&mut self, user: u32, quota: &NameQuota, now: Instant) {
        if Some(user) != self.own {
            self.left.insert(user, (quota.bytes, now));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn quota_of_a_user_ends_and_comes_again() {
        let (mut quotas, now) = (NameQuotas { own: Some(0), left: HashMap::new() }, Instant::now());
        let mut quota = quotas.of(1, now);
        assert!(quota.has(MOST as usize) && !quota.has(MOST as usize + 1));
        quota.take(MOST as usize);
        quotas.keep(1, &quota, now);
        let later = |seconds| quotas.of(1, now + Duration::from_secs(seconds)).bytes;
        assert_eq!([0, 1, 1_000_000].map(later), [0, PER_SECOND, MOST]);
        assert_eq!(quotas.of(2, now).bytes, MOST, "another user");
        assert_eq!(quotas.of(0, now).bytes, u64::MAX, "the collector's own user");
    }
}
