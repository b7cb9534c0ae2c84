// SPDX-License-Identifier: Apache-2.0
use std::collections::BTreeMap;
use tare_log_file::{End, How};
use tare_log_segment::ChannelId;
use tare_log_segment::probe::ANSWERS;

/// Of all processes, by their index in the log.
#[derive(Default)]
pub struct ProcessEnds(pub Vec<ProcessEnd>);

impl ProcessEnds {
    /// Events lost, by the index of the process and its number of the channel.
    pub fn lost(&self) -> impl Iterator<Item = (usize, ChannelId, u64)> {
        self.0
            .iter()
            .enumerate()
            .flat_map(|(process, end)| end.lost.iter().map(move |(id, lost)| (process, *id, *lost)))
    }

    /// Events of threads that found no ring.
    pub fn unserved(&self) -> u64 {
        self.0.iter().map(|end| end.unserved).fold(0, u64::saturating_add)
    }

    /// Events that programs were to write themselves, and did not.
    pub fn deferred(&self) -> u64 {
        self.0.iter().map(|end| end.deferred).fold(0, u64::saturating_add)
    }

    /// Questions of round trips that got no answer in time.
    pub fn unanswered(&self) -> u64 {
        let unanswered = self.lost().filter(|(_, id, _)| id & ANSWERS != 0);
        unanswered.map(|(_, _, lost)| lost).fold(0, u64::saturating_add)
    }
}

/// How a process left, and what became of its events besides, as far as the file says so.
#[derive(Clone, Debug, Default)]
pub struct ProcessEnd {
    /// `None` where its end is not in the file.
    pub how: Option<How>,
    pub unserved: u64,
    pub deferred: u64,
    /// By channel.
    pub lost: BTreeMap<ChannelId, u64>,
}

impl ProcessEnd {
    /// Each collector tells of all since the process began.
    pub fn learn(&mut self, end: End) {
        self.how = Some(end.how);
        self.unserved = self.unserved.max(end.unserved);
        self.deferred = self.deferred.max(end.deferred);
        for (id, lost) in end.lost_by_channel {
            let known = self.lost.entry(id).or_default();
            *known = lost.max(*known);
        }
    }
}
