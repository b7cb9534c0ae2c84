// SPDX-License-Identifier: Apache-2.0
use crate::times::Times;
use std::collections::HashMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use tare_command::{Failure, ResultExt, say};
use tare_log_file::{
    Block, Channels, Clock, Event, Events, Item, Kind, Mark, Payload, ProcessInfo, Reader,
};
use tare_log_segment::ChannelId;

/// A file of log events. It is read twice: first for what all events need.
pub struct Log {
    path: PathBuf,
    times: Times,
    processes: HashMap<u32, ProcessInfo>,
    channels: HashMap<(u32, u16), String>,
}

/// One line of what is printed.
#[derive(Clone, Copy, Debug)]
pub struct Row<'log> {
    /// Since the Unix epoch; `None` where the file has too few readings of the clocks.
    pub time_ns: Option<i64>,
    pub ticks: u64,
    pub pid: u32,
    pub tid: u32,
    pub thread: &'log str,
    pub what: What<'log>,
}

#[derive(Clone, Copy, Debug)]
pub enum What<'log> {
    Event {
        channel: &'log str,
        payload: Payload<'log>,
    },
    /// So many events of the thread were lost, the first and the last of them at these ticks.
    Loss {
        lost: u64,
        first: u64,
        last: u64,
    },
}

impl Log {
    pub fn open(path: &Path) -> Result<Self, Failure> {
        let mut log = Self {
            path: path.to_owned(),
            times: Times::default(),
            processes: HashMap::new(),
            channels: HashMap::new(),
        };
        let mut reader = Reader::new(File::open(path).or_input(path.display())?);
        let mut is_log = false;
        for block in reader.by_ref() {
            is_log = true;
            log.learn(&block.or_failed(path.display())?);
        }
        if !is_log {
            return Err(Failure::input(format_args!("{}: no file of tare log", path.display())));
        }
        if reader.damaged > 0 {
            say(format_args!("{}: {} bytes are damaged", path.display(), reader.damaged));
        }
        Ok(log)
    }

    fn learn(&mut self, block: &Block) {
        let (process, content) = (block.header.process, &block.content);
        match block.header.kind {
            Kind::Clock => {
                if let Ok(clock) = Clock::read(content) {
                    self.times.add(clock);
                }
            }
            Kind::Process => {
                if let Ok(info) = serde_json::from_slice(content) {
                    self.processes.insert(process, info);
                }
            }
            Kind::Channels => {
                let channels: Channels = serde_json::from_slice(content).unwrap_or_default();
                let named = channels.channels.into_iter();
                self.channels.extend(named.map(|channel| ((process, channel.id), channel.name)));
            }
            Kind::Events | Kind::End => {}
        }
    }

    /// Calls `each` with every row, in the order of the file: block by block, each of one ring.
    /// Ends early when `each` says so by an error.
    pub fn rows<E>(&self, mut each: impl FnMut(Row<'_>) -> Result<(), E>) -> Result<(), Ended<E>> {
        let failed = |error| Ended::Failed(Failure::work(format_args!("{error}")));
        let mut seen = HashMap::new();
        for block in Reader::new(File::open(&self.path).map_err(failed)?) {
            let block = block.map_err(failed)?;
            let header = &block.header;
            if header.kind != Kind::Events {
                continue;
            }
            // Who took over from a collector that died writes again what that had not freed,
            // the same words in one block.
            let ring = (self.segment(header.process), header.ring);
            let known = seen.entry(ring).or_insert(0);
            if header.from < header.to && header.to <= *known {
                continue;
            }
            *known = header.to.max(*known);
            let Ok(events) = Events::of(&block) else {
                say("a block of events cannot be unpacked, though its checksum is right");
                continue;
            };
            let Ok(items) = events.items() else {
                say("a block of events cannot be read, though its checksum is right");
                continue;
            };
            let (mut tid, mut name) = (header.tid, header.thread);
            for item in items {
                let (ticks, what) = match item {
                    Item::Event(Event { ticks, channel, payload }) => {
                        let channel = self.channel(header.process, channel);
                        (ticks, What::Event { channel, payload })
                    }
                    Item::Mark(Mark::Loss { ticks, lost, first, last }) => {
                        (ticks, What::Loss { lost, first, last })
                    }
                    Item::Mark(Mark::Thread { tid: next, name: text, .. }) => {
                        (tid, name) = (next, text);
                        continue;
                    }
                };
                let row = self.row(header.process, (tid, &name), ticks, what);
                each(row).map_err(Ended::Enough)?;
            }
        }
        Ok(())
    }

    /// What names a segment, whichever collector has served it.
    fn segment(&self, process: u32) -> (u32, u64, u64) {
        let known = self.processes.get(&process);
        known.map_or((process, 0, 0), |known| (known.pid, known.start, known.began_ticks))
    }

    fn row<'log>(
        &'log self,
        process: u32,
        (tid, name): (u32, &'log [u8; 16]),
        ticks: u64,
        what: What<'log>,
    ) -> Row<'log> {
        let end = name.iter().position(|byte| *byte == 0).unwrap_or(name.len());
        Row {
            time_ns: self.times.at(ticks),
            ticks,
            pid: self.processes.get(&process).map_or(0, |process| process.pid),
            tid,
            thread: std::str::from_utf8(&name[..end]).unwrap_or(""),
            what,
        }
    }

    fn channel(&self, process: u32, id: ChannelId) -> &str {
        self.channels.get(&(process, id)).map_or("", String::as_str)
    }
}

/// Why not every row was seen.
pub enum Ended<E> {
    Enough(E),
    Failed(Failure),
}
