// SPDX-License-Identifier: Apache-2.0
//! Makes a whole file of what is left: of a file that was cut off or damaged, or of the segment
//! of a program whose collector has died.

mod segment_copy;

use crate::arguments;
use crate::collector::compressor::Compressor;
use crate::collector::producer::Producer;
use crate::collector::quotas::name_quota::NameQuota;
use crate::log_file::LogFile;
use crate::procfs;
use crate::reader::log::{Segment, segment as named};
use crate::reader::seen_ranges::SeenRanges;
use serde::Serialize;
use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use tare_command::{Failure, NewFile, ResultExt, SegmentError, regular_file, say};
use tare_log_file::{
    Block, Clock, Codec, End, Events, Header, How, Item, Kind, Mark, ProcessInfo, Reader, Relation,
};
use tare_shm::header::MAGIC;

/// What was found.
#[derive(Default)]
struct Found {
    programs: u64,
    events: u64,
    lost: u64,
    /// Bytes that belong to no block that can be read.
    damaged: u64,
}

/// What `--json` prints.
#[derive(Serialize)]
struct Report<'path> {
    out: Cow<'path, str>,
    programs: u64,
    events: u64,
    lost: u64,
    /// Bytes that were left out.
    damaged: u64,
    /// In the new file.
    bytes: u64,
}

pub fn recover(arguments: &arguments::Recover) -> Result<ExitCode, Failure> {
    let from = &arguments.from;
    let out = arguments.out.clone().unwrap_or_else(|| beside(from));
    let what = || format!("--out {}", out.display());
    let mut source = regular_file::open(from).or_input(from.display())?;
    let mut begin = [0; size_of::<u64>()];
    let is_segment = source.read_exact(&mut begin).is_ok() && u64::from_ne_bytes(begin) == MAGIC;
    if !is_segment && !has_block(from)? {
        let what = from.display();
        return Err(Failure::input(format_args!(
            "{what}: neither a file of tare log nor the shared memory of a program"
        )));
    }
    let new = NewFile::create_first(&out).or_input(what())?;
    let file = new.file().or_failed(what())?;
    let mut log_file = LogFile::of(file, &what(), &out, Codec::default())?;
    let found = if is_segment {
        segment(from, &source, &mut log_file)
    } else {
        blocks(from, &mut log_file).or_failed(what())
    };
    let found = found?;
    new.finish().or_failed(what())?;
    if arguments.json {
        let Found { programs, events, lost, damaged } = found;
        let out = out.to_string_lossy();
        let report = Report { out, programs, events, lost, damaged, bytes: log_file.bytes() };
        tare_command::print_json(serde_json::json!(report))?;
    } else {
        let Found { programs, events, damaged, .. } = found;
        tare_command::print(format_args!(
            "{}: {events} events of {programs} programs; {damaged} damaged bytes left out\n",
            out.display()
        ))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// The name of what was recovered, unless it is given.
fn beside(from: &Path) -> PathBuf {
    if from.starts_with("/proc") {
        return PathBuf::from("recovered.log");
    }
    let mut name = from.as_os_str().to_owned();
    name.push(".recovered");
    PathBuf::from(name)
}

fn has_block(path: &Path) -> Result<bool, Failure> {
    let mut reader = Reader::new(regular_file::open(path).or_input(path.display())?);
    Ok(reader.next().transpose().or_failed(path.display())?.is_some())
}

/// A process of the file.
#[derive(Default)]
struct Process {
    /// Its number with the collector that has served it last.
    number: u32,
    has_ended: bool,
    events: u64,
    lost: u64,
}

/// The processes of a file.
#[derive(Default)]
struct Processes {
    all: Vec<Process>,
    known: HashMap<Segment, usize>,
    /// The index of a process, by the numbers that collectors have given it.
    indices: HashMap<u32, usize>,
}

impl Processes {
    /// Whose block this is.
    fn of(&mut self, block: &Block) -> usize {
        let (number, end) = (block.header.process, self.all.len());
        let about = (block.header.kind == Kind::Process).then_some(&block.content);
        let index = match about.and_then(|about| serde_json::from_slice(about).ok()) {
            Some(about) => *self.known.entry(named(&about)).or_insert(end),
            None => *self.indices.entry(number).or_insert(end),
        };
        if index == end {
            self.all.push(Process::default());
        }
        self.indices.insert(number, index);
        self.all[index].number = number;
        index
    }
}

/// Copies the blocks that can be read, and says of the processes without an end that they have
/// none.
fn blocks(path: &Path, log_file: &mut LogFile) -> io::Result<Found> {
    let mut found = Found::default();
    let mut processes = Processes::default();
    let mut seen = SeenRanges::default();
    let mut reader = Reader::new(regular_file::open(path)?);
    for block in reader.by_ref() {
        let block = block?;
        let Some((events, lost)) = checked(&block) else {
            found.damaged += block.content.len() as u64;
            continue;
        };
        let header = &block.header;
        if !matches!(header.kind, Kind::Clock | Kind::Relation) {
            let index = processes.of(&block);
            let process = &mut processes.all[index];
            process.has_ended = header.kind == Kind::End;
            if !seen.add((index, header.ring), header.from, header.to) {
                process.events += events;
                process.lost = process.lost.saturating_add(lost);
            }
        }
        log_file.block(Header { ..*header }, &block.content)?;
    }
    found.damaged += reader.damaged;
    for process in processes.all {
        found.programs += 1;
        found.events += process.events;
        found.lost = found.lost.saturating_add(process.lost);
        if !process.has_ended {
            let Process { number, events, lost, .. } = process;
            let lost_by_channel = BTreeMap::new();
            let end = End {
                how: How::Recovered,
                events,
                lost,
                unserved: 0,
                deferred: 0,
                lost_by_channel,
            };
            let text = serde_json::to_vec(&end).unwrap_or_default();
            log_file.metadata(Kind::End, number, &text)?;
        }
    }
    Ok(found)
}

/// Events and losses of a block; `None` where its content is none that a writer makes.
fn checked(block: &Block) -> Option<(u64, u64)> {
    match block.header.kind {
        Kind::Events => {
            let events = Events::of(block).ok()?;
            let items = events.items().ok()?;
            let lost = items.iter().map(|item| match item {
                Item::Mark(Mark::Loss { lost, .. }) => *lost,
                _ => 0,
            });
            let count = items.iter().filter(|item| matches!(item, Item::Event(_))).count();
            Some((count as u64, lost.fold(0, u64::saturating_add)))
        }
        Kind::Clock => Clock::read(&block.content).ok().map(|_| (0, 0)),
        Kind::Process => {
            let known: Result<ProcessInfo, _> = serde_json::from_slice(&block.content);
            known.ok().map(|_| (0, 0))
        }
        Kind::Relation => {
            let known: Result<Relation, _> = serde_json::from_slice(&block.content);
            known.ok().map(|_| (0, 0))
        }
        Kind::Channels | Kind::End => {
            let known: Result<serde_json::Value, _> = serde_json::from_slice(&block.content);
            known.ok().map(|_| (0, 0))
        }
    }
}

/// Writes what stands in a segment, which stays as it is.
fn segment(path: &Path, source: &File, log_file: &mut LogFile) -> Result<Found, Failure> {
    let refused = |why: &str| Failure::input(format_args!("{}: {why}", path.display()));
    let (copy, pid) = segment_copy::copy(path, source).map_err(|why| refused(&why))?;
    let adopted =
        Producer::adopt(copy, pid, procfs::user(), None, log_file.next_process(), log_file.codec);
    let mut producer = adopted.map_err(|error| match error {
        SegmentError::Refused(_) => refused(&error.to_string()),
        SegmentError::Served(_) => refused("it is in use"),
    })?;
    producer.silence();
    if pid == 0 {
        say(format_args!(
            "{}: a copy of shared memory has only one clock reading, so events have ticks instead \
             of times",
            path.display()
        ));
    }
    let file = log_file.path().display().to_string();
    write(&mut producer, log_file, pid != 0).or_failed(format_args!("--out {file}"))?;
    let counts = producer.event_counts();
    Ok(Found { programs: 1, events: counts.events, lost: counts.lost, damaged: 0 })
}

fn write(producer: &mut Producer, log_file: &mut LogFile, is_here: bool) -> io::Result<()> {
    let mut compressor = Compressor::new(0)?;
    log_file.reading(producer.first_reading())?;
    let mut name_quota = NameQuota::unlimited();
    producer.write_metadata(log_file, None, &mut name_quota)?;
    let rings = producer.new_rings();
    producer.allow_rings(rings);
    loop {
        for _ in 0..rings {
            producer.copy(&mut compressor, true)?;
            while let Some(compressed) = compressor.first(true)? {
                producer.write(log_file, compressed)?;
                compressor.take();
            }
        }
        if producer.is_empty() {
            break;
        }
    }
    producer.end(log_file, &mut compressor, Some(How::Recovered), &mut name_quota)?;
    if is_here { log_file.clock() } else { Ok(()) }
}
