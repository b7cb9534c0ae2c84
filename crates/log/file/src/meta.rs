// SPDX-License-Identifier: Apache-2.0
//! What blocks that hold no events say.

use crate::columns::Invalid;
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
    pub clock: String,
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
    /// Events lost to full rings since the program began, by the number of their channel: those
    /// that were not logged, without those that were overwritten.
    #[serde(default)]
    pub lost_by_channel: BTreeMap<u16, u64>,
}

/// One moment by all clocks, as in `tare_clock::Snapshot`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Clock {
    pub ticks: u64,
    pub monotonic_ns: i64,
    pub realtime_ns: i64,
    pub width: u64,
}

impl Clock {
    pub fn bytes(&self) -> [u8; 32] {
        let numbers = [self.ticks, self.monotonic_ns as u64, self.realtime_ns as u64, self.width];
        let mut bytes = [0; 32];
        for (place, number) in bytes.chunks_exact_mut(8).zip(numbers) {
            place.copy_from_slice(&number.to_le_bytes());
        }
        bytes
    }

    pub fn read(content: &[u8]) -> Result<Self, Invalid> {
        let content: &[u8; 32] = content.try_into().map_err(|_| Invalid)?;
        let number = |index: usize| {
            u64::from_le_bytes(std::array::from_fn(|byte| content[8 * index + byte]))
        };
        Ok(Self {
            ticks: number(0),
            monotonic_ns: number(1) as i64,
            realtime_ns: number(2) as i64,
            width: number(3),
        })
    }
}
