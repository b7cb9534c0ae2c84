// SPDX-License-Identifier: Apache-2.0
mod rows;

pub use rows::{Ended, Row, What};

use super::clock_domains::{ClockDomains, Times};
use super::process_end::{ProcessEnd, ProcessEnds};
use super::tail::Tail;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::path::{Path, PathBuf};
use tare_clock::Snapshot;
use tare_command::{Failure, ResultExt, regular_file, say};
use tare_log_file::{Block, Channels, Clock, Header, Kind, OpenedChannel, ProcessInfo, Reader};
use tare_log_segment::ChannelId;

/// A file of log events. It is read twice: first for what all events need.
pub struct Log {
    paths: Vec<PathBuf>,
    clock_domains: ClockDomains,
    /// Each process once, whichever collectors have served it.
    processes: Vec<ProcessInfo>,
    known: HashMap<Segment, usize>,
    /// The index of a process by its file and its number there.
    indices: HashMap<(usize, u32), usize>,
    channels: HashMap<(usize, ChannelId), OpenedChannel>,
    /// All that each channel has had.
    handlers: HashMap<(usize, ChannelId), BTreeSet<String>>,
    process_ends: ProcessEnds,
    /// Processes with virtual threads.
    carrying: HashSet<usize>,
    /// Of the first and the last event, by the index of the process.
    ticks: Vec<Option<(u64, u64)>>,
}

impl Log {
    /// All times are those of the first file's host, as far as it is known how the clocks of
    /// others stand to its own.
    pub fn open(paths: &[PathBuf]) -> Result<Self, Failure> {
        let mut log = Self::nothing(paths);
        for (file, path) in paths.iter().enumerate() {
            log.read(file, path)?;
        }
        log.clock_domains.relate().iter().for_each(say);
        Ok(log)
    }

    fn read(&mut self, file: usize, path: &Path) -> Result<(), Failure> {
        let mut reader = Reader::new(regular_file::open(path).or_input(path.display())?);
        let mut is_log = false;
        for block in reader.by_ref() {
            is_log = true;
            self.learn_of(file, &block.or_failed(path.display())?);
        }
        if !is_log {
            return Err(Failure::input(format_args!("{}: not a file of tare log", path.display())));
        }
        if reader.damaged > 0 {
            say(format_args!("{}: {} bytes are damaged", path.display(), reader.damaged));
        }
        Ok(())
    }

    /// Of files that are still to be read.
    pub fn nothing(paths: &[PathBuf]) -> Self {
        Self {
            paths: paths.to_owned(),
            clock_domains: ClockDomains::default(),
            processes: Vec::new(),
            known: HashMap::new(),
            indices: HashMap::new(),
            channels: HashMap::new(),
            handlers: HashMap::new(),
            process_ends: ProcessEnds::default(),
            carrying: HashSet::new(),
            ticks: Vec::new(),
        }
    }

    /// What the file has, each block of which is shown to `each`, and where more will come.
    pub fn open_at_end(
        path: &Path,
        mut each: impl FnMut(&Self, &Block),
    ) -> Result<(Self, Tail), Failure> {
        let mut log = Self::nothing(&[path.to_owned()]);
        let mut tail = Tail::open(path)?;
        tail.each(|block| {
            log.learn(&block);
            each(&log, &block);
        })?;
        if tail.at == 0 {
            return Err(Failure::input(format_args!("{}: not a file of tare log", path.display())));
        }
        Ok((log, tail))
    }

    /// Takes from a block of the one file what events need.
    pub fn learn(&mut self, block: &Block) {
        self.learn_of(0, block);
        self.clock_domains.update();
    }

    fn learn_of(&mut self, file: usize, block: &Block) {
        let (process, content) = ((file, block.header.process), &block.content);
        match block.header.kind {
            Kind::Clock => {
                if let Ok(clock) = Clock::read(content) {
                    self.clock_domains.add(clock);
                }
            }
            Kind::Process => {
                if let Ok(info) = serde_json::from_slice::<ProcessInfo>(content) {
                    let index = *self.known.entry(segment(&info)).or_insert(self.processes.len());
                    if index == self.processes.len() {
                        self.add(info);
                    }
                    self.indices.insert(process, index);
                    self.process_ends.0[index].how = None;
                }
            }
            Kind::Channels => {
                let channels: Channels = serde_json::from_slice(content).unwrap_or_default();
                let index = self.index(process);
                for channel in channels.channels {
                    let key = (index, channel.id);
                    self.handlers.entry(key).or_default().insert(channel.handler.clone());
                    self.channels.insert(key, channel);
                }
            }
            Kind::Events => {
                let index = self.index(process);
                let Header { is_carried, events, first_ticks, last_ticks, .. } = block.header;
                if is_carried {
                    self.carrying.insert(index);
                }
                if events > 0 {
                    let known = &mut self.ticks[index];
                    let (first, last) = known.unwrap_or((first_ticks, last_ticks));
                    *known = Some((first.min(first_ticks), last.max(last_ticks)));
                }
            }
            Kind::Relation => {
                if let Ok(relation) = serde_json::from_slice(content) {
                    self.clock_domains.add_relation(relation);
                }
            }
            Kind::End => {
                let index = self.index(process);
                if let Ok(end) = serde_json::from_slice(content) {
                    self.process_ends.0[index].learn(end);
                }
            }
        }
    }

    /// The index of a process; one that the file no longer describes gets one, too.
    fn index(&mut self, number: (usize, u32)) -> usize {
        if let Some(index) = self.indices.get(&number) {
            return *index;
        }
        self.indices.insert(number, self.processes.len());
        self.add(ProcessInfo::default());
        self.processes.len() - 1
    }

    fn add(&mut self, info: ProcessInfo) {
        self.clock_domains.add_process(&info);
        self.process_ends.0.push(ProcessEnd::default());
        self.ticks.push(None);
        self.processes.push(info);
    }

    pub fn processes(&self) -> &[ProcessInfo] {
        &self.processes
    }

    /// Processes whose end is not in the file.
    pub fn running(&self) -> impl Iterator<Item = (usize, &ProcessInfo)> {
        self.processes.iter().enumerate().filter(|(index, _)| !self.has_ended(*index))
    }

    pub fn has_ended(&self, index: usize) -> bool {
        self.process_ends.0[index].how.is_some()
    }

    /// The channels of all processes, each with the index of its process.
    pub fn channels(&self) -> impl Iterator<Item = (usize, &OpenedChannel)> {
        self.channels.iter().map(|((index, _), channel)| (*index, channel))
    }

    pub fn channel(&self, process: usize, id: ChannelId) -> Option<&OpenedChannel> {
        self.channels.get(&(process, id))
    }

    /// Every handler that the channel has had while it logged into the file.
    pub fn handlers(&self, process: usize, id: ChannelId) -> impl Iterator<Item = &str> {
        self.handlers.get(&(process, id)).into_iter().flatten().map(String::as_str)
    }

    /// Those of the process with this index.
    pub fn times(&self, process: usize) -> Times<'_> {
        self.clock_domains.of(process)
    }

    /// The bound of the error of its times, where they were related to another host's clock.
    pub fn clock_error_ns(&self, process: usize) -> Option<i64> {
        self.clock_domains.error_ns(process)
    }

    /// The readings of the clocks that the times of the first process come from.
    pub fn readings(&self) -> &[Snapshot] {
        self.clock_domains.readings()
    }

    /// The time of each process's first event, `None` where it is not known.
    fn begins(&self) -> impl Iterator<Item = Option<i64>> {
        let ticks = self.ticks.iter().enumerate();
        ticks.filter_map(|(index, ticks)| ticks.map(|(first, _)| self.times(index).at(first)))
    }

    /// Refuses files in which the time of some event is not known.
    pub fn must_have_times(&self) -> Result<(), Failure> {
        if self.begins().all(|time| time.is_some()) {
            return Ok(());
        }
        Err(Failure::input(format_args!(
            "{}: too few clock readings to convert times",
            names(&self.paths)
        )))
    }

    /// The time of the first event.
    pub fn began_ns(&self) -> Option<i64> {
        self.begins().flatten().min()
    }

    /// From the first to the last event.
    pub fn length_ns(&self) -> Option<i64> {
        self.clock_domains.length_ns(&self.ticks)
    }

    /// How processes left.
    pub fn process_ends(&self) -> &ProcessEnds {
        &self.process_ends
    }

    /// The index of a process, by the number that it has in a block of the one file.
    pub fn index_of(&self, number: u32) -> Option<usize> {
        self.indices.get(&(0, number)).copied()
    }

    pub fn name(&self, process: usize, id: ChannelId) -> &str {
        self.channels.get(&(process, id)).map_or("", |channel| &channel.name)
    }
}

/// The files, for a message.
pub fn names(paths: &[PathBuf]) -> String {
    let names: Vec<_> = paths.iter().map(|path| path.display().to_string()).collect();
    names.join(", ")
}

/// What names a segment, whichever collector has served it.
pub type Segment = (u32, u64, u64, String);

pub fn segment(info: &ProcessInfo) -> Segment {
    (info.pid, info.start, info.began_ticks, info.host.clone())
}
