// SPDX-License-Identifier: Apache-2.0
mod ending;
mod writing;

use crate::fox::{self, Foxes};
use crate::kept::Counters;
use crate::output::Output;
use crate::press::{Batch, Press};
use crate::program;
use crate::ring::Ring;
use crate::rule_book::RuleBook;
use crate::ruling::Ruling;
use crate::timer::Timer;
use crate::totals::Totals;
use std::collections::HashMap;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::time::Instant;
use tare_clock::Source;
use tare_command::Obstacle;
use tare_log_file::{Boot, Channels, Clock, Codec, Codecs, Kind, OpenedChannel, ProcessInfo};
use tare_log_segment::layout::{KIND, LARGEST_RING, MOST_RINGS, Process, SMALLEST_RING, VERSION};
use tare_log_segment::probe::ANSWERS;
use tare_log_segment::{Channel, ChannelId, Configuration, Handler, Identity, Policy};
use tare_shm::{Access, Bell, Refusal, Segment, service, syscall};

/// A program that logs. Whatever it wrote into its segment is copied once and checked.
pub struct Target {
    number: u32,
    pid: u32,
    fd: OwnedFd,
    /// Kept because the lock that says who serves goes with any descriptor that is closed.
    second: Option<OwnedFd>,
    segment: Segment,
    rings: Vec<Option<Ring>>,
    ring_words: usize,
    /// Rings that there were when they were last looked at.
    looked_at: usize,
    timer: Timer,
    /// Not known of a program that is not here.
    boot: Boot,
    /// Becomes readable with the end of the process.
    pidfd: Option<OwnedFd>,
    /// Ends with the process, or when it executes another program.
    connection: Option<UnixStream>,
    /// Whether the file knows the process.
    is_named: bool,
    changes: Option<u32>,
    /// What the file knows of channels.
    known: HashMap<ChannelId, Configuration>,
    codecs: Arc<Codecs>,
    ruling: Ruling,
    counters: Counters,
    foxes: Foxes,
    is_silent: bool,
    /// Whether it is a program of this user.
    is_own: bool,
    /// Another program has its place.
    is_replaced: bool,
    /// Events that there were when it was last looked at.
    events_seen: u64,
    /// Whether the file has what handlers kept until the end.
    has_rest: bool,
    ended: Option<Instant>,
    /// Without what the program writes and counts itself.
    totals: Totals,
    /// Events that it had written into a file itself before.
    written_before: u64,
}

impl Target {
    /// Takes the segment behind `fd` of process `pid`.
    pub fn adopt(
        fd: OwnedFd,
        pid: u32,
        connection: Option<UnixStream>,
        number: u32,
        codec: Codec,
    ) -> Result<Self, Obstacle> {
        let raw = fd.as_raw_fd();
        let mapped = size_of::<Process>();
        let segment = Segment::open_begun(raw, KIND, VERSION, Access::ReadWrite, mapped)?;
        // SAFETY: atomics only.
        let process: &Process = unsafe { segment.at(0) }.ok_or(Refusal::TooSmall)?;
        let ring_words = process.ring_words.load(Relaxed) as usize;
        let is_ring = ring_words.is_power_of_two()
            && (SMALLEST_RING..=LARGEST_RING).contains(&ring_words.saturating_mul(8));
        if !is_ring {
            return Err(Refusal::Damaged.into());
        }
        if let Some(other) = service::serve(raw)? {
            return Err(Obstacle::Served(other));
        }
        // Of a copy nobody knows where, or since what start of the machine, its ticks were counted.
        let is_copy = pid == 0 && connection.is_none();
        let target = Self {
            number,
            pid,
            fd,
            second: None,
            segment,
            rings: (0..MOST_RINGS).map(|_| None).collect(),
            ring_words,
            looked_at: 0,
            timer: Timer::of(process, pid, is_copy),
            boot: if is_copy { Boot::default() } else { program::boot() },
            pidfd: connection.as_ref().and_then(program::peer).or_else(|| program::pidfd(pid)),
            connection,
            is_named: false,
            changes: None,
            known: HashMap::new(),
            codecs: Arc::new(Codecs { usual: codec, ..Codecs::default() }),
            ruling: Ruling::new(program::names(pid, segment.header().owner_pid)),
            counters: Counters::default(),
            foxes: Foxes::default(),
            is_silent: false,
            is_own: syscall::fstat(raw).is_ok_and(|status| status.st_uid == program::user()),
            is_replaced: false,
            events_seen: 0,
            has_rest: false,
            ended: None,
            totals: Totals::default(),
            written_before: sum(process, |channel| &channel.written),
        };
        process.is_on.store(1, Relaxed);
        for (id, _) in process.opened() {
            process.renew(id);
        }
        Ok(target)
    }

    fn process(&self) -> &Process {
        process(&self.segment)
    }

    /// Whether its machine has no tick counter to rely on.
    pub fn has_fallen_back(&self) -> bool {
        self.timer.source == Source::Fallback
    }

    /// It has left its memory alone: nothing is asked or answered for it.
    pub fn silence(&mut self) {
        self.is_silent = true;
    }

    /// Whether this is its segment.
    pub fn has(&self, segment: &OwnedFd) -> bool {
        let both = [&self.fd, segment].map(|fd| syscall::fstat(fd.as_raw_fd()));
        matches!(both, [Ok(own), Ok(other)] if own.st_ino == other.st_ino)
    }

    /// Its program has come to the door, too.
    pub fn join(&mut self, segment: OwnedFd, connection: Option<UnixStream>) {
        self.second = Some(segment);
        // Closing the second descriptor before has released the lock.
        let _ = service::serve(self.fd.as_raw_fd());
        self.connection = connection;
        self.welcome();
    }

    fn about(&self) -> ProcessInfo {
        let header = self.segment.header();
        ProcessInfo {
            pid: header.owner_pid,
            start: header.owner_start,
            began_ticks: self.process().first.ticks.load(Relaxed),
            host: program::host(),
            command: program::command(self.pid),
            clock: self.timer.source.name().to_owned(),
            boot: self.boot,
            ahead_ns: self.timer.ahead_ns,
        }
    }

    /// Carries over what is new of rules, channels and threads.
    pub fn rule(&mut self, book: &RuleBook) {
        for place in 0..self.used_rings() {
            self.ring(place);
        }
        let rings = self.rings.iter().enumerate();
        let heads = rings.filter_map(|(place, ring)| Some((place, ring.as_ref()?.head())));
        let process = process(&self.segment);
        if self.ruling.apply(&book.rules, book.generation, process, heads) {
            self.changes = None;
        }
    }

    /// Answers the program that it is served: it waits for this.
    pub fn welcome(&mut self) {
        if let Some(connection) = &mut self.connection {
            let _ = io::Write::write_all(connection, &[1]);
        }
    }

    /// Writes what the process is, once, and the channels that were opened or changed.
    pub fn introduce(&mut self, output: &mut Output) -> io::Result<()> {
        if !self.is_named {
            let about = serde_json::to_vec(&self.about()).unwrap_or_default();
            output.note(Kind::Process, self.number, &about)?;
            // However short the file stays, or is cut off, its events have a time of day.
            output.clock()?;
            self.is_named = true;
            if let Some(file) = output.identity() {
                self.process().lend(self.number, file);
            }
        }
        self.foxes.retry(process(&self.segment), self.timer);
        let changes = self.process().changes.load(Acquire);
        if self.changes == Some(changes) {
            return Ok(());
        }
        let mut known = Vec::new();
        let mut opened = Vec::new();
        for (id, channel) in self.process().opened() {
            let configuration = self.process().configuration(id);
            if self.known.get(&id) == Some(&configuration) {
                continue;
            }
            let name: Vec<u8> = self.process().name(channel).take(4096).collect();
            known.push((id, configuration));
            // Who reads the file asks what its events are, also when it takes no more.
            let handler = self.process().unclosed(id).handler;
            let named = |id, name| OpenedChannel {
                id,
                name,
                tid: channel.tid.load(Relaxed),
                handler: name_of(Handler::ALL, handler),
                policy: name_of(Policy::ALL, configuration.policy),
            };
            let name = String::from_utf8_lossy(&name).into_owned();
            let answers = fox::name(&name, configuration.handler);
            opened.extend(answers.map(|name| named(id | ANSWERS, name)));
            opened.push(named(id, name));
        }
        if !opened.is_empty() {
            let text = serde_json::to_vec(&Channels { channels: opened }).unwrap_or_default();
            output.note(Kind::Channels, self.number, &text)?;
        }
        for (id, configuration) in known {
            self.counters.learn(id, configuration);
            // Root opens no sockets because a program of somebody else says so.
            if !self.is_silent && (self.is_own || self.ruling.asks_for(&configuration)) {
                self.foxes.learn(process(&self.segment), id, configuration, self.timer);
            } else {
                self.foxes.forget(process(&self.segment), id);
            }
            self.known.insert(id, configuration);
        }
        let asked = self.known.iter().filter_map(|(id, of)| Some((*id, of.codec?)));
        self.codecs = Arc::new(Codecs::new(self.codecs.usual, asked));
        self.changes = Some(changes);
        self.process().told_changes.store(changes, Release);
        Ok(())
    }

    /// What became of its events up to now.
    pub fn totals(&self) -> Totals {
        let process = self.process();
        let written = sum(process, |channel| &channel.written);
        Totals {
            events: self.totals.events + written.saturating_sub(self.written_before),
            unserved: process.unserved.load(Relaxed),
            deferred: sum(process, |channel| &channel.deferred),
            ..self.totals
        }
    }

    /// The clocks when the segment was made.
    pub fn first_reading(&self) -> Clock {
        let first = &self.process().first;
        let monotonic_ns = first.monotonic_ns.load(Relaxed) as i64;
        Clock {
            ticks: first.ticks.load(Relaxed),
            monotonic_ns: monotonic_ns.wrapping_sub(self.timer.ahead_ns),
            realtime_ns: first.realtime_ns.load(Relaxed) as i64,
            width: first.width.load(Relaxed),
            boot: self.boot,
        }
    }

    /// What the file knows this process by.
    pub fn number(&self) -> u32 {
        self.number
    }

    /// Copies events out of the ring at `place`: all where `all`, else those that make a block or
    /// have waited. Says whether there were any; the press must have room.
    pub fn copy(&mut self, place: usize, press: &mut Press, all: bool) -> io::Result<bool> {
        let Some(ring) = self.ring(place) else { return Ok(false) };
        if !ring.is_time(all) {
            return Ok(false);
        }
        let mut words = press.memory();
        let (from, thread) = ring.copy(&mut words);
        if words.is_empty() {
            press.give_back(words);
            return Ok(false);
        }
        let codecs = self.codecs.clone();
        press.add(Batch { target: self.number, ring: place, from, thread, words, codecs })?;
        Ok(true)
    }

    /// Rings that ever had an owner are below this number.
    pub fn used_rings(&mut self) -> usize {
        self.looked_at = self.rings_now();
        self.looked_at
    }

    fn rings_now(&self) -> usize {
        self.process().rings_used()
    }

    fn ring(&mut self, place: usize) -> Option<&mut Ring> {
        let slot = &mut self.rings[place];
        if slot.is_none() {
            *slot = Ring::map(self.fd.as_raw_fd(), place, self.ring_words);
        }
        slot.as_mut()
    }

    /// Its socket that the program asks for.
    pub fn socket(&self, what: Identity) -> Option<BorrowedFd<'_>> {
        self.foxes.socket(what)
    }

    /// How full the fullest ring is, from 0 to 1, which also says that there are new ones.
    pub fn fullness(&self) -> f64 {
        if self.rings_now() > self.looked_at {
            return 1.0;
        }
        self.rings.iter().flatten().map(Ring::fullness).fold(0.0, f64::max)
    }

    /// Whether a ring has a whole batch that was not copied yet.
    pub fn has_batch(&self) -> bool {
        self.rings.iter().flatten().any(Ring::has_batch)
    }

    /// When the first of what is in its rings has waited enough, if anything is there, or a
    /// counter is to be read.
    pub fn due(&self) -> Option<Instant> {
        let of_rings = self.rings.iter().flatten().filter_map(Ring::due);
        of_rings.chain(self.counters.next()).min()
    }

    /// What threads ring when there is something to do.
    pub fn bell(&self) -> &Bell {
        &self.process().bell
    }
}

/// What the program has at the beginning of its segment, which is mapped whole.
fn process(segment: &Segment) -> &Process {
    // SAFETY: atomics only; the mapping lasts as long as the target.
    unsafe { segment.at(0) }.expect("it was there")
}

/// Of all channels.
fn sum(process: &Process, count: impl Fn(&Channel) -> &AtomicU64) -> u64 {
    process.opened().map(|(_, channel)| count(channel).load(Relaxed)).fold(0, u64::wrapping_add)
}

impl Drop for Target {
    fn drop(&mut self) {
        // Who comes later finds the words where they are, and that nobody serves them.
        for ring in self.rings.drain(..).flatten() {
            ring.unmap();
        }
        // SAFETY: nothing of it is used after this.
        unsafe { self.segment.unmap() };
    }
}

fn name_of<T: PartialEq>(all: &[(&str, T)], one: T) -> String {
    all.iter().find(|(_, other)| *other == one).map_or("", |(name, _)| name).to_owned()
}
