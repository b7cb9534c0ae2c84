// SPDX-License-Identifier: Apache-2.0
//! What blocks that hold no events say.

use crate::codec::Invalid;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A process that logs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessInfo {
    pub pid: u32,
    /// Its start in clock ticks after boot: with `pid` it names one process of a host.
    pub start: u64,
    /// When its segment was made: a process that executes another program makes another.
    pub began_ticks: u64,
    pub host: String,
    pub command: String,
    /// What times are read from: tsc, tscp, monotonic or fallback.
    pub clock: String,
    #[serde(default)]
    pub boot: Boot,
    /// How far its CLOCK_MONOTONIC_RAW is ahead of that in readings of the clocks: the difference
    /// of their time namespaces.
    #[serde(default)]
    pub ahead_ns: i64,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpenedChannel {
    pub id: u16,
    pub name: String,
    /// The thread that opened it.
    pub tid: u32,
    pub handler: String,
    pub policy: String,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Channels {
    pub channels: Vec<OpenedChannel>,
}

/// How a process left.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum How {
    /// By itself.
    Finished,
    /// Without a word: killed, crashed, or replaced by another program.
    Ended,
    /// It goes on, the collector does not.
    Left,
    /// Nobody knows: the file was made whole of what was left.
    Recovered,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct End {
    pub how: How,
    /// Events in the file, and lost to full rings, by this collector; and those that found no ring.
    pub events: u64,
    pub lost: u64,
    pub unserved: u64,
    /// Events that were to be written by the program itself, and came through the ring.
    #[serde(default)]
    pub deferred: u64,
    /// Events lost to full rings since the program began, by the number of their channel: those
    /// that were not logged, without those that were overwritten.
    #[serde(default)]
    pub lost_by_channel: BTreeMap<u16, u64>,
}

/// One start of one machine, by the kernel's `boot_id`: ticks of different ones have nothing to
/// do with each other. Zeros where it is not known.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize,
)]
#[serde(from = "String", into = "String")]
pub struct Boot(pub [u8; 16]);

impl From<String> for Boot {
    /// Whatever has no thirty-two digits is not known.
    fn from(text: String) -> Self {
        let digits: Vec<_> = text.chars().filter_map(|digit| digit.to_digit(16)).collect();
        let pairs = digits.as_chunks().0.iter().map(|[high, low]| (high << 4 | low) as u8);
        pairs.collect::<Vec<_>>().try_into().map_or_else(|_| Self::default(), Self)
    }
}

impl From<Boot> for String {
    /// As the kernel writes it.
    fn from(boot: Boot) -> Self {
        let digits: Vec<_> = boot.0.iter().map(|byte| format!("{byte:02x}")).collect();
        let parts = [&digits[..4], &digits[4..6], &digits[6..8], &digits[8..10], &digits[10..]];
        parts.map(<[_]>::concat).join("-")
    }
}

/// One moment by all clocks, as in `tare_clock::Snapshot`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Clock {
    pub ticks: u64,
    pub monotonic_ns: i64,
    pub realtime_ns: i64,
    pub width: u64,
    pub boot: Boot,
}

impl Clock {
    const NUMBERS: usize = 32;
    const BYTES: usize = Self::NUMBERS + size_of::<Boot>();

    pub fn bytes(&self) -> [u8; Self::BYTES] {
        let numbers = [self.ticks, self.monotonic_ns as u64, self.realtime_ns as u64, self.width];
        let mut bytes = [0; Self::BYTES];
        for (place, number) in bytes.chunks_exact_mut(8).zip(numbers) {
            place.copy_from_slice(&number.to_le_bytes());
        }
        bytes[Self::NUMBERS..].copy_from_slice(&self.boot.0);
        bytes
    }

    pub fn read(content: &[u8]) -> Result<Self, Invalid> {
        let content: &[u8; Self::BYTES] = content.try_into().map_err(|_| Invalid)?;
        let boot = std::array::from_fn(|byte| content[Self::NUMBERS + byte]);
        let number = |index: usize| {
            u64::from_le_bytes(std::array::from_fn(|byte| content[8 * index + byte]))
        };
        Ok(Self {
            ticks: number(0),
            monotonic_ns: number(1) as i64,
            realtime_ns: number(2) as i64,
            width: number(3),
            boot: Boot(boot),
        })
    }
}

/// What one machine's clock says.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Moment {
    pub host: String,
    pub boot: Boot,
    /// CLOCK_MONOTONIC_RAW.
    pub monotonic_ns: i64,
}

/// One moment on two machines.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Relation {
    /// That which asked, and that which answered.
    pub here: Moment,
    pub there: Moment,
    /// The two are at most so much apart.
    pub error_ns: i64,
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOOT: &str = "00112233-4455-6677-8899-aabbccddeeff";

    #[test]
    fn a_boot_is_read_as_the_kernel_writes_it() {
        let boot = Boot::from(format!("{BOOT}\n"));
        assert_eq!(boot.0, std::array::from_fn(|byte| byte as u8 * 0x11));
        assert_eq!(String::from(boot), BOOT);
        for text in ["", "0011", &BOOT[1..], &format!("{BOOT}00")] {
            assert_eq!(Boot::from(text.to_owned()), Boot::default(), "{text}");
        }
    }

    #[test]
    fn a_reading_is_read_as_written() {
        let boot = Boot::from(BOOT.to_owned());
        let clock = Clock { ticks: u64::MAX, monotonic_ns: -1, realtime_ns: 7, width: 3, boot };
        assert_eq!(Clock::read(&clock.bytes()), Ok(clock));
        assert_eq!(Clock::read(&clock.bytes()[1..]), Err(Invalid));
    }
}
