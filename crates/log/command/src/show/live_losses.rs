// SPDX-License-Identifier: Apache-2.0
use crate::collector::accept::takeover;
use crate::procfs;
use crate::reader::log::Log;
use std::collections::{BTreeMap, HashMap};
use std::iter;
use std::os::fd::AsRawFd;
use std::sync::atomic::Ordering::Relaxed;
use tare_command::processes;
use tare_log_segment::layout::{KIND, Process, VERSION};
use tare_shm::{Access, Segment};

/// Losses by channel of programs that run here: the file has them when a program has ended, its
/// memory has them now.
#[derive(Default)]
pub struct LiveLosses {
    /// By process of the file; `None` where its memory cannot be seen.
    segments: HashMap<usize, Option<Watched>>,
}

struct Watched {
    segment: Segment,
    /// By channel: how many were lost, when it was last looked at.
    known: HashMap<u16, u64>,
}

impl LiveLosses {
    /// Events lost since the last call, by the name of the channel.
    pub fn changes(&mut self, log: &Log) -> BTreeMap<String, u64> {
        let mut changes = BTreeMap::new();
        for (index, info) in log.running() {
            let watched = self
                .segments
                .entry(index)
                .or_insert_with(|| Watched::open(info.pid, info.began_ticks));
            for (id, lost) in watched.iter_mut().flat_map(Watched::changes) {
                let name = log.channel(index, id).map_or("", |channel| &channel.name);
                let sum: &mut u64 = changes.entry(name.to_owned()).or_default();
                *sum = sum.saturating_add(lost);
            }
        }
        let ended = |index: &usize| log.has_ended(*index);
        self.segments.retain(|index, _| !ended(index));
        changes
    }
}

impl Watched {
    fn open(pid: u32, began_ticks: u64) -> Option<Self> {
        // One in another PID namespace has another number here.
        let others = processes::all().filter(|other| procfs::own_pid(*other) == Some(pid));
        let mut segments = iter::once(pid).chain(others).flat_map(takeover::segments_of);
        segments.find_map(|fd| {
            let mapped = size_of::<Process>();
            let fd = fd.as_raw_fd();
            let segment = Segment::open_begun(fd, KIND, VERSION, Access::ReadOnly, mapped).ok()?;
            let mut watched = Self { segment, known: HashMap::new() };
            let process = watched.process()?;
            let is_its_own = process.first.ticks.load(Relaxed) == began_ticks;
            if is_its_own {
                // What was lost before is no news.
                watched.changes();
            }
            is_its_own.then_some(watched)
        })
    }

    fn process(&self) -> Option<&Process> {
        // SAFETY: atomics only, and nothing is written; the mapping lasts as long as `self`.
        unsafe { self.segment.at(0) }
    }

    fn changes(&mut self) -> Vec<(u16, u64)> {
        let lost: Vec<_> = self
            .process()
            .into_iter()
            .flat_map(Process::opened)
            .map(|(id, channel)| (id, channel.lost.load(Relaxed)))
            .filter(|(_, lost)| *lost > 0)
            .collect();
        let news = lost.into_iter().map(|(id, lost)| {
            let before = self.known.insert(id, lost).unwrap_or(0);
            (id, lost.saturating_sub(before))
        });
        news.filter(|(_, lost)| *lost > 0).collect()
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        // SAFETY: what it gave out is used no more.
        unsafe { self.segment.unmap() };
    }
}
