// SPDX-License-Identifier: Apache-2.0
mod rows;

pub use rows::{Ended, Row, What};

use super::leaving::{Leaving, Leavings};
use super::tail::Tail;
use super::timelines::Timelines;
use super::times::Times;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::path::{Path, PathBuf};
use tare_clock::Snapshot;
use tare_command::{Failure, ResultExt, ordinary, say};
use tare_log_file::{Block, Channels, Clock, Header, Kind, OpenedChannel, ProcessInfo, Reader};
use tare_log_segment::ChannelId;

/// A file of log events. It is read twice: first for what all events need.
pub struct Log {
    paths: Vec<PathBuf>,
    timelines: Timelines,
    /// Each process once, whichever collectors have served it.
    processes: Vec<ProcessInfo>,
    known: HashMap<Segment, usize>,
    /// The place of a process by its file and its number there.
    places: HashMap<(usize, u32), usize>,
    channels: HashMap<(usize, ChannelId), OpenedChannel>,
    /// All that each channel has had.
    handlers: HashMap<(usize, ChannelId), BTreeSet<String>>,
    leavings: Leavings,
    /// Processes with virtual threads.
    carrying: HashSet<usize>,
    /// Of the first and the last event, by the place of the process.
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
        log.timelines.relate().iter().for_each(say);
        Ok(log)
    }

    fn read(&mut self, file: usize, path: &Path) -> Result<(), Failure> {
        let mut reader = Reader::new(ordinary::open(path).or_input(path.display())?);
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
            timelines: Timelines::default(),
            processes: Vec::new(),
            known: HashMap::new(),
            places: HashMap::new(),
            channels: HashMap::new(),
            handlers: HashMap::new(),
            leavings: Leavings::default(),
            carrying: HashSet::new(),
            ticks: Vec::new(),
        }
    }

    /// What the file has, each block of which is shown to `each`, and the place where more will
    /// come.
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
    }

    fn learn_of(&mut self, file: usize, block: &Block) {
        let (process, content) = ((file, block.header.process), &block.content);
        match block.header.kind {
            Kind::Clock => {
                if let Ok(clock) = Clock::read(content) {
                    self.timelines.add(clock);
                }
            }
            Kind::Process => {
                if let Ok(info) = serde_json::from_slice::<ProcessInfo>(content) {
                    let place = *self.known.entry(segment(&info)).or_insert(self.processes.len());
                    if place == self.processes.len() {
                        self.add(info);
                    }
                    self.places.insert(process, place);
                    self.leavings.0[place].how = None;
                }
            }
            Kind::Channels => {
                let channels: Channels = serde_json::from_slice(content).unwrap_or_default();
                let place = self.place(process);
                for channel in channels.channels {
                    let key = (place, channel.id);
                    self.handlers.entry(key).or_default().insert(channel.handler.clone());
                    self.channels.insert(key, channel);
                }
            }
            Kind::Events => {
                let place = self.place(process);
                let Header { is_carried, events, first_ticks, last_ticks, .. } = block.header;
                if is_carried {
                    self.carrying.insert(place);
                }
                if events > 0 {
                    let known = &mut self.ticks[place];
                    let (first, last) = known.unwrap_or((first_ticks, last_ticks));
                    *known = Some((first.min(first_ticks), last.max(last_ticks)));
                }
            }
            Kind::Relation => {
                if let Ok(relation) = serde_json::from_slice(content) {
                    self.timelines.add_relation(relation);
                }
            }
            Kind::End => {
                let place = self.place(process);
                if let Ok(end) = serde_json::from_slice(content) {
                    self.leavings.0[place].learn(end);
                }
            }
        }
    }

    /// Where a process stands; one of which the file no longer tells anything gets a place, too.
    fn place(&mut self, number: (usize, u32)) -> usize {
        if let Some(place) = self.places.get(&number) {
            return *place;
        }
        self.places.insert(number, self.processes.len());
        self.add(ProcessInfo::default());
        self.processes.len() - 1
    }

    fn add(&mut self, info: ProcessInfo) {
        self.timelines.add_process(&info);
        self.leavings.0.push(Leaving::default());
        self.ticks.push(None);
        self.processes.push(info);
    }

    pub fn processes(&self) -> &[ProcessInfo] {
        &self.processes
    }

    /// Processes whose end is not in the file.
    pub fn running(&self) -> impl Iterator<Item = (usize, &ProcessInfo)> {
        self.processes.iter().enumerate().filter(|(place, _)| !self.has_ended(*place))
    }

    pub fn has_ended(&self, place: usize) -> bool {
        self.leavings.0[place].how.is_some()
    }

    /// The channels of all processes, each with the place of its process.
    pub fn channels(&self) -> impl Iterator<Item = (usize, &OpenedChannel)> {
        self.channels.iter().map(|((place, _), channel)| (*place, channel))
    }

    pub fn channel(&self, process: usize, id: ChannelId) -> Option<&OpenedChannel> {
        self.channels.get(&(process, id))
    }

    /// Every handler that the channel has had while it logged into the file.
    pub fn handlers(&self, process: usize, id: ChannelId) -> impl Iterator<Item = &str> {
        self.handlers.get(&(process, id)).into_iter().flatten().map(String::as_str)
    }

    /// Those of the process at this place.
    pub fn times(&self, process: usize) -> &Times {
        self.timelines.of(process)
    }

    /// The bound of the error of its times, where they were related to another host's clock.
    pub fn clock_error_ns(&self, process: usize) -> Option<i64> {
        self.timelines.error_ns(process)
    }

    /// The readings of the clocks that the times of the first process come from.
    pub fn readings(&self) -> &[Snapshot] {
        self.timelines.readings()
    }

    /// The time of each process's first event, `None` where it is not known.
    fn begins(&self) -> impl Iterator<Item = Option<i64>> {
        let ticks = self.ticks.iter().enumerate();
        ticks.filter_map(|(place, ticks)| ticks.map(|(first, _)| self.times(place).at(first)))
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
        self.timelines.length_ns(&self.ticks)
    }

    /// How processes left.
    pub fn leavings(&self) -> &Leavings {
        &self.leavings
    }

    /// The place of a process, by the number that it has in a block of the one file.
    pub fn place_of(&self, number: u32) -> Option<usize> {
        self.places.get(&(0, number)).copied()
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
