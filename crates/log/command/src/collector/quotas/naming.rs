// SPDX-License-Identifier: Apache-2.0
//! How many bytes the file gets of what programs of another user are called: names of channels,
//! command lines, and lists of channels that lost events. Without a limit, a program that changes
//! its channels all the time would fill the disk and log nothing.

use crate::program;
use std::collections::HashMap;
use std::time::Instant;

/// At once: some programs with all channels that there can be, under names of usual length.
pub const MOST: u64 = 32 << 20;
/// What a user gets again.
const PER_SECOND: u64 = 64 << 10;

/// What may be written of a program now.
pub struct Room {
    bytes: u64,
    /// Names that were not written.
    pub left_out: usize,
}

impl Room {
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

pub struct Naming {
    own: u32,
    /// By user: bytes that are left, and when they were counted.
    left: HashMap<u32, (u64, Instant)>,
}

impl Default for Naming {
    fn default() -> Self {
        Self { own: program::user(), left: HashMap::new() }
    }
}

impl Naming {
    pub fn room(&self, user: u32, now: Instant) -> Room {
        if user == self.own {
            return Room::unlimited();
        }
        let (left, since) = self.left.get(&user).copied().unwrap_or((MOST, now));
        let more = now.duration_since(since).as_millis() as u64 * PER_SECOND / 1_000;
        Room { bytes: left.saturating_add(more).min(MOST), left_out: 0 }
    }

    /// Some of the room has been used since `now`.
    pub fn keep(&mut self, user: u32, room: &Room, now: Instant) {
        if user != self.own {
            self.left.insert(user, (room.bytes, now));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn room_of_a_user_ends_and_comes_again() {
        let (mut naming, now) = (Naming { own: 0, left: HashMap::new() }, Instant::now());
        let mut room = naming.room(1, now);
        assert!(room.has(MOST as usize) && !room.has(MOST as usize + 1));
        room.take(MOST as usize);
        naming.keep(1, &room, now);
        let later = |seconds| naming.room(1, now + Duration::from_secs(seconds)).bytes;
        assert_eq!([0, 1, 1_000_000].map(later), [0, PER_SECOND, MOST]);
        assert_eq!(naming.room(2, now).bytes, MOST, "another user");
        assert_eq!(naming.room(0, now).bytes, u64::MAX, "the collector's own user");
    }
}
