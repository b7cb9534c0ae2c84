// SPDX-License-Identifier: Apache-2.0
//! What comes into a file at the moment: it is read behind the collector, who knows nothing of it.

use super::live_losses::LiveLosses;
use super::screen::{Key, Screen};
use crate::arguments;
use crate::format;
use crate::reader::log::Log;
use crate::reader::seen_ranges::{Ring, SeenRanges};
use crate::reader::tail::Tail;
use serde_json::{Value as Json, json};
use std::collections::{BTreeMap, HashMap};
use std::io;
use std::process::ExitCode;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use tare_command::terminal::printable_json;
use tare_command::{Failure, ResultExt};
use tare_log_file::{Block, Event, Events, Header, Item, Kind, Mark, Payload};

const SECOND: Duration = Duration::from_secs(1);

/// How long blocks are looked into a second: of those that come faster only their headers are
/// read, which have the number of events.
const PATIENCE: Duration = Duration::from_millis(600);

/// A collector writes the clocks every second.
const SILENCE: Duration = Duration::from_secs(3);

/// A channel, or what is known of all.
#[derive(Clone, Copy, Debug, Default)]
struct Flow {
    events: u64,
    lost: u64,
    /// Of the file: a block's are shared out by the bytes that its events had in memory.
    bytes: f64,
}

/// What was read of rings.
#[derive(Default)]
struct Rings {
    seen: SeenRanges,
    /// Of those whose last block was not counted: the losses that blocks before it report.
    reported: HashMap<Ring, u64>,
}

impl Rings {
    /// The ring of a block of events; `None` where the same words came before.
    fn new_of(&mut self, log: &Log, header: &Header) -> Option<Ring> {
        let ring = (log.index_of(header.process)?, header.ring);
        (!self.seen.add(ring, header.from, header.to)).then_some(ring)
    }

    /// Losses in the block before, if that was not counted.
    fn lost(&mut self, ring: Ring, reported: u64, is_late: bool) -> u64 {
        let before = if is_late {
            self.reported.insert(ring, reported)
        } else {
            self.reported.remove(&ring)
        };
        before.map_or(0, |before| reported.saturating_sub(before))
    }
}

/// What came since the one before.
#[derive(Debug, Default)]
struct Interval {
    seconds: f64,
    all: Flow,
    /// Events of blocks that nobody looked into.
    unseen: u64,
    channels: BTreeMap<String, Flow>,
}

/// Shows what comes, until q or Ctrl-C.
pub fn top(arguments: &arguments::Top) -> Result<ExitCode, Failure> {
    let screen = Screen::open(!arguments.json && !arguments.once).or_failed("the terminal")?;
    let mut rings = Rings::default();
    let (mut log, mut tail) = Log::open_at_end(&arguments.file, |log, block| {
        if block.header.kind == Kind::Events {
            rings.new_of(log, &block.header);
        }
    })?;
    let mut losses = LiveLosses::default();
    losses.changes(&log);
    let (mut begin, mut written) = (Instant::now(), Instant::now());
    loop {
        match screen.wait(SECOND.saturating_sub(begin.elapsed())).or_failed("the terminal")? {
            Key::End => return Ok(ExitCode::SUCCESS),
            Key::Other => continue,
            Key::None => {}
        }
        let mut now = Interval::default();
        let is_written = now.fill(&mut log, &mut rings, &mut tail)?;
        for (name, lost) in losses.changes(&log) {
            let sum = &mut now.channels.entry(name).or_default().lost;
            *sum = sum.saturating_add(lost);
        }
        now.seconds = begin.elapsed().as_secs_f64();
        begin = Instant::now();
        if is_written {
            written = begin;
        }
        let shown = if arguments.json {
            screen.line(&printable_json(&now.json(&log).to_string()))
        } else {
            let note = (written.elapsed() > SILENCE).then_some("no collector writes to it");
            screen.show(&now.text(&log, &arguments.file.display().to_string(), note))
        };
        match shown {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {
                return Ok(ExitCode::SUCCESS);
            }
            other => other.or_failed("the terminal")?,
        }
        if arguments.once {
            return Ok(ExitCode::SUCCESS);
        }
    }
}

impl Interval {
    /// Reads all blocks that are new; whether there were any.
    fn fill(&mut self, log: &mut Log, rings: &mut Rings, tail: &mut Tail) -> Result<bool, Failure> {
        let begin = Instant::now();
        let mut any = false;
        let mut error = None;
        tail.each(|block| {
            any = true;
            log.learn(&block);
            if block.header.kind == Kind::Events && error.is_none() {
                let is_late = begin.elapsed() > PATIENCE;
                error = self.add(log, rings, &block, is_late).err();
            }
        })?;
        error.map_or(Ok(any), Err)
    }

    fn add(
        &mut self,
        log: &Log,
        rings: &mut Rings,
        block: &Block,
        is_late: bool,
    ) -> Result<(), Failure> {
        let header = &block.header;
        let stored = block.bytes() as f64;
        self.all.bytes += stored;
        let Some(ring) = rings.new_of(log, header) else { return Ok(()) };
        self.add_lost(rings.lost(ring, header.told, is_late));
        if is_late {
            self.all.events += u64::from(header.events);
            self.unseen += u64::from(header.events);
            return Ok(());
        }
        let events = Events::of(block);
        let items = events.as_ref().map_err(|error| *error).and_then(Events::items);
        let items = items.map_err(|_| Failure::work("a block of events cannot be read"))?;
        let whole: usize = items.iter().map(size).sum();
        let share = stored / whole.max(1) as f64;
        for item in &items {
            match item {
                Item::Event(Event { channel, .. }) => {
                    self.all.events += 1;
                    let name = log.name(ring.0, *channel);
                    let flow = match self.channels.get_mut(name) {
                        Some(flow) => flow,
                        None => self.channels.entry(name.to_owned()).or_default(),
                    };
                    flow.events += 1;
                    flow.bytes += share * size(item) as f64;
                }
                Item::Mark(Mark::Loss { lost, .. }) => self.add_lost(*lost),
                Item::Mark(_) => {}
            }
        }
        Ok(())
    }

    /// A file may report any number.
    fn add_lost(&mut self, lost: u64) {
        self.all.lost = self.all.lost.saturating_add(lost);
    }

    fn rate(&self, number: f64) -> f64 {
        if self.seconds > 0.0 { number / self.seconds } else { 0.0 }
    }

    /// The busiest first.
    fn by_events(&self) -> Vec<(&str, Flow)> {
        let mut all: Vec<_> =
            self.channels.iter().map(|(name, flow)| (name.as_str(), *flow)).collect();
        all.sort_by_key(|(_, flow)| std::cmp::Reverse(flow.events + flow.lost));
        all
    }

    fn json(&self, log: &Log) -> Json {
        let rates = |flow: Flow| {
            json!({
                "events_per_second": self.rate(flow.events as f64),
                "lost_per_second": self.rate(flow.lost as f64),
                "bytes_per_second": self.rate(flow.bytes),
            })
        };
        let channels: Vec<Json> = self
            .by_events()
            .into_iter()
            .map(|(name, flow)| {
                let mut channel = rates(flow);
                channel["channel"] = name.into();
                channel
            })
            .collect();
        let mut all = rates(self.all);
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        all["time_ns"] = (now.as_nanos() as u64).into();
        all["seconds"] = self.seconds.into();
        all["programs"] = log.running().count().into();
        all["unseen"] = self.unseen.into();
        all["channels"] = channels.into();
        all
    }

    fn text(&self, log: &Log, file: &str, note: Option<&str>) -> String {
        let rate = |number: f64| format::count(self.rate(number));
        let mut head = format!(
            "{}  {} events/s  {} lost/s  {} B/s",
            format::counted(log.running().count(), "program", "programs"),
            rate(self.all.events as f64),
            rate(self.all.lost as f64),
            rate(self.all.bytes),
        );
        if self.unseen > 0 {
            head += &format!("  {} events/s not counted", rate(self.unseen as f64));
        }
        if let Some(note) = note {
            head += &format!("  ({note})");
        }
        // Last: of a long name the end may be cut off.
        head += &format!("  {file}");
        let mut rows = vec![["channel", "events/s", "lost/s", "B/s"].map(str::to_owned).to_vec()];
        for (name, flow) in self.by_events() {
            let numbers = [flow.events as f64, flow.lost as f64, flow.bytes].map(rate);
            rows.push([name.to_owned()].into_iter().chain(numbers).collect());
        }
        format!("{head}\n\n{}", format::align(&rows))
    }
}

/// Bytes of an event as it was logged.
fn size(item: &Item<'_>) -> usize {
    match item {
        Item::Event(Event { payload: Payload::Bytes(bytes), .. }) => 16 + bytes.len(),
        Item::Event(_) => 16,
        Item::Mark(_) => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tare_log_file::{Codecs, Encoder};
    use tare_log_segment::record::{loss_record, short_tag};

    /// An event, and a record after which so many were lost in all.
    fn block(from: u64, told: u64, lost: u64) -> Block {
        let mut words = vec![10, short_tag(1, 5).unwrap()];
        words.extend(loss_record(20, lost, 11, 19));
        let packed = Encoder::default().pack(&words, &Codecs::default()).unwrap();
        let header = Header {
            codec: packed.codec,
            raw: packed.raw as u32,
            from,
            to: from + words.len() as u64,
            events: packed.summary.events,
            told,
            ..Header::of(Kind::Events, 7)
        };
        Block { header, content: packed.stored }
    }

    #[test]
    fn losses_of_blocks_that_are_not_looked_into_are_told_by_the_next() {
        let (mut log, mut rings) = (Log::nothing(&[]), Rings::default());
        let mut now = Interval::default();
        let blocks = [(0, 0, 4, true), (8, 4, 5, true), (16, 5, 7, false), (24, 7, 8, false)];
        for (from, told, lost, is_late) in blocks {
            // The second is what a collector writes that has taken over.
            for _ in 0..2 {
                let block = block(from, told, lost);
                log.learn(&block);
                now.add(&log, &mut rings, &block, is_late).unwrap();
            }
        }
        assert_eq!((now.all.events, now.unseen, now.all.lost), (4, 2, 8));
    }
}
