// SPDX-License-Identifier: Apache-2.0
//! One program that logs: its segment and rings, and what the file says of it.

pub mod event_clock;
mod events;
pub mod handler_state;
mod liveness;
mod metadata;
pub mod ring;
pub mod round_trips;
pub mod sparse_copy;

use super::compressor::{Batch, Compressor};
use super::event_counts::EventCounts;
use crate::collector::quotas::resource_quota::Resources;
use crate::collector::rules::apply::AppliedRules;
use crate::collector::rules::rules_file::RulesFile;
use crate::procfs;
use event_clock::EventClock;
use handler_state::PeriodicCounters;
use ring::Ring;
use round_trips::RoundTrips;
use std::collections::HashMap;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;
use tare_clock::Source;
use tare_command::{SegmentError, processes};
use tare_log_file::{Boot, Clock, Codec, Codecs};
use tare_log_segment::layout::{self, KIND, MOST_RINGS, Process, RingHead, VERSION};
use tare_log_segment::{Channel, ChannelId, Configuration, Identity};
use tare_shm::{Access, Bell, Refusal, Segment, service, syscall};

/// Bytes of the kernel's for the file, the connection and the process of a program, and for a
/// mapping.
const KERNELS: usize = 16 << 10;
const KERNELS_MAPPING: usize = 512;

/// Bytes of page tables of a mapping: 8 for each page.
const fn page_tables(bytes: usize) -> usize {
    const PAGE: usize = 4096;
    (bytes / PAGE * 8).next_multiple_of(PAGE) + PAGE
}

/// A program that logs. Whatever it wrote into its segment is copied once and checked.
pub struct Producer {
    number: u32,
    pub pid: u32,
    /// The user whose quota it takes from, and what it has taken.
    pub user: u32,
    pub held: Resources,
    /// Of that, bytes of its segment.
    pub held_of_segment: u64,
    /// A warning has said that it gets no more.
    pub is_limited: bool,
    /// A warning has said that names of it are left out.
    pub is_abridged: bool,
    fd: OwnedFd,
    /// Which file the segment is.
    identity: Option<Identity>,
    /// Kept because the lock that says who serves goes with any descriptor that is closed.
    second: Option<OwnedFd>,
    segment: Segment,
    rings: Vec<Option<Ring>>,
    ring_words: usize,
    /// Rings that there were when they were last looked at, and those of them that are served.
    looked_at: usize,
    served_rings: usize,
    /// The ring that is copied next.
    next_ring: usize,
    /// The collector's turn in which it was served last.
    pub turn: u64,
    /// Its end is in the file, or nothing of it.
    pub is_over: bool,
    event_clock: EventClock,
    /// Not known of a program that is not here.
    boot: Boot,
    /// Becomes readable with the end of the process.
    pidfd: Option<OwnedFd>,
    /// Ends with the process, or when it executes another program.
    connection: Option<UnixStream>,
    /// Where it is: what it has mapped is not asked of a process of another user.
    place: Option<[u64; 3]>,
    /// Whether the file knows the process.
    is_named: bool,
    changes: Option<u32>,
    /// What the file knows of channels.
    known: HashMap<ChannelId, Configuration>,
    codecs: Arc<Codecs>,
    applied_rules: AppliedRules,
    counters: PeriodicCounters,
    round_trips: RoundTrips,
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
    counts: EventCounts,
    /// Events that it had written into a file itself before.
    written_before: u64,
}

impl Producer {
    /// Bytes of a segment that are allocated at most because they are read and written here.
    pub const MOST_BYTES: u64 = (size_of::<Process>() + MOST_RINGS * size_of::<RingHead>()) as u64;

    /// Bytes that any program takes besides its segment.
    pub const LEAST_BYTES: u64 =
        (size_of::<Self>() + KERNELS + page_tables(size_of::<Process>())) as u64;

    /// Bytes that one of its rings takes besides its segment.
    pub fn bytes_of_ring(&self) -> u64 {
        let tables = page_tables(layout::ring_size(self.ring_words));
        (size_of::<Option<Ring>>() + KERNELS_MAPPING + tables) as u64
    }

    /// Takes the segment behind `fd` of process `pid`.
    pub fn adopt(
        fd: OwnedFd,
        pid: u32,
        user: u32,
        connection: Option<UnixStream>,
        number: u32,
        codec: Codec,
    ) -> Result<Self, SegmentError> {
        let raw = fd.as_raw_fd();
        let mapped = size_of::<Process>();
        let segment = Segment::open_begun(raw, KIND, VERSION, Access::ReadWrite, mapped)?;
        // Its events would stand in the file as those of another program.
        let is_known = connection.is_none() || procfs::is_own(user);
        if !is_known && !procfs::is_owner(pid, segment.header()) {
            let owner = segment.header().owner_pid;
            // SAFETY: nothing of it is used after this.
            unsafe { segment.unmap() };
            return Err(Refusal::OtherProcess(owner).into());
        }
        // SAFETY: nothing of it is used after this.
        let served = serve(&segment, raw).inspect_err(|_| unsafe { segment.unmap() });
        let (process, ring_words) = served?;
        // Of a copy nobody knows where, or since what start of the machine, its ticks were counted.
        let is_copy = pid == 0 && connection.is_none();
        let producer = Self {
            number,
            pid,
            user,
            held: Resources::default(),
            held_of_segment: 0,
            is_limited: false,
            is_abridged: false,
            fd,
            identity: Identity::of(raw).ok(),
            second: None,
            segment,
            rings: Vec::new(),
            ring_words,
            looked_at: 0,
            served_rings: 0,
            next_ring: 0,
            turn: 0,
            is_over: false,
            event_clock: EventClock::of(process, pid, is_copy),
            boot: if is_copy { Boot::default() } else { procfs::boot() },
            pidfd: pidfd(connection.as_ref(), pid),
            connection,
            place: procfs::place(pid),
            is_named: false,
            changes: None,
            known: HashMap::new(),
            codecs: Arc::new(Codecs { usual: codec, ..Codecs::default() }),
            applied_rules: AppliedRules::new(procfs::names(pid, segment.header().owner_pid)),
            counters: PeriodicCounters::default(),
            round_trips: RoundTrips::default(),
            is_silent: false,
            is_own: syscall::fstat(raw).is_ok_and(|status| procfs::is_own(status.st_uid)),
            is_replaced: false,
            events_seen: 0,
            has_rest: false,
            ended: None,
            counts: EventCounts::default(),
            written_before: sum(process, |channel| &channel.written),
        };
        process.is_on.store(1, Relaxed);
        Ok(producer)
    }

    fn process(&self) -> &Process {
        process(&self.segment)
    }

    /// Whether its machine has no tick counter to rely on.
    pub fn has_fallen_back(&self) -> bool {
        self.event_clock.source == Source::Fallback
    }

    /// It has left its memory alone: nothing is asked or answered for it.
    pub fn silence(&mut self) {
        self.is_silent = true;
    }

    /// Whether this is its segment.
    pub fn has(&self, segment: Identity) -> bool {
        self.identity == Some(segment)
    }

    /// Locks its segment again: closing any descriptor of it has released the lock.
    pub fn lock_again(&self) {
        let _ = service::serve(self.fd.as_raw_fd());
    }

    /// Its program has connected, too.
    pub fn join(&mut self, segment: OwnedFd, connection: Option<UnixStream>) {
        self.second = Some(segment);
        // The second descriptor before was closed.
        self.lock_again();
        self.connection = connection;
        self.welcome();
    }

    /// Carries over what is new of rules, channels and threads until then; what is left comes with
    /// the next call.
    pub fn rule(&mut self, book: &RulesFile, until: Instant) {
        for place in 0..self.served_rings {
            self.ring(place);
        }
        let rings = self.rings.iter().enumerate();
        let heads = rings.filter_map(|(place, ring)| Some((place, ring.as_ref()?.head())));
        let (heads, process) = (heads.collect::<Vec<_>>(), process(&self.segment));
        if self.applied_rules.apply(&book.rules, book.generation, process, &heads, until) {
            self.changes = None;
        }
    }

    /// Rings that the program uses now and that are not served; they are once they are allowed.
    pub fn new_rings(&mut self) -> usize {
        self.looked_at = self.process().rings_used();
        self.looked_at.saturating_sub(self.served_rings)
    }

    pub fn allow_rings(&mut self, more: usize) {
        self.served_rings += more;
        self.rings.resize_with(self.served_rings, || None);
    }

    /// Bytes of memory that its segment has, and that are kept here for its channels.
    pub fn bytes(&self) -> (u64, u64) {
        let known = self.known.capacity() * size_of::<(ChannelId, Configuration)>();
        let own = known + self.applied_rules.bytes() + self.counters.bytes();
        (Self::bytes_of(&self.fd), own as u64)
    }

    pub fn bytes_of(segment: &OwnedFd) -> u64 {
        syscall::fstat(segment.as_raw_fd()).map_or(0, |status| status.st_blocks as u64 * 512)
    }

    /// Answers the program that it is served: it waits for this.
    pub fn welcome(&mut self) {
        if let Some(connection) = &mut self.connection {
            let _ = io::Write::write_all(connection, &[1]);
        }
    }

    /// What became of its events up to now.
    pub fn event_counts(&self) -> EventCounts {
        let process = self.process();
        let written = sum(process, |channel| &channel.written);
        EventCounts {
            events: self.counts.events.saturating_add(written.saturating_sub(self.written_before)),
            unserved: process.unserved.load(Relaxed),
            deferred: sum(process, |channel| &channel.deferred),
            ..self.counts
        }
    }

    /// The clocks when the segment was made.
    pub fn first_reading(&self) -> Clock {
        let first = &self.process().first;
        let monotonic_ns = first.monotonic_ns.load(Relaxed) as i64;
        Clock {
            ticks: first.ticks.load(Relaxed),
            monotonic_ns: monotonic_ns.wrapping_sub(self.event_clock.ahead_ns),
            realtime_ns: first.realtime_ns.load(Relaxed) as i64,
            width: first.width.load(Relaxed),
            boot: self.boot,
        }
    }

    /// What the file knows this process by.
    pub fn number(&self) -> u32 {
        self.number
    }

    /// Copies events out of the next ring: all where `all`, else those that make a block or have
    /// waited. Says whether there were any; the compressor must have room.
    pub fn copy(&mut self, compressor: &mut Compressor, all: bool) -> io::Result<bool> {
        let place = self.next_ring % self.served_rings.max(1);
        self.next_ring = place + 1;
        let Some(ring) = self.ring(place) else { return Ok(false) };
        if all {
            ring.finish();
        }
        if !ring.is_time(all) {
            return Ok(false);
        }
        let mut words = compressor.memory();
        let (from, thread) = ring.copy(&mut words);
        if words.is_empty() {
            compressor.give_back(words);
            return Ok(false);
        }
        let codecs = self.codecs.clone();
        compressor.add(Batch {
            producer: self.number,
            ring: place,
            from,
            thread,
            words,
            codecs,
        })?;
        Ok(true)
    }

    /// Whether there is nothing more to copy.
    pub fn is_empty(&mut self) -> bool {
        !self.rings.iter_mut().flatten().any(|ring| ring.is_time(true))
    }

    /// Rings that are served: all below this number.
    pub fn served_rings(&self) -> usize {
        self.served_rings
    }

    fn ring(&mut self, place: usize) -> Option<&mut Ring> {
        let slot = self.rings.get_mut(place)?;
        if slot.is_none() {
            *slot = Ring::map(self.fd.as_raw_fd(), place, self.ring_words);
        }
        slot.as_mut()
    }

    /// Its socket that the program asks for.
    pub fn socket(&self, what: Identity) -> Option<BorrowedFd<'_>> {
        self.round_trips.socket(what)
    }

    /// How full the fullest ring is, from 0 to 1, which also says that there are new ones.
    pub fn fullness(&self) -> f64 {
        if self.process().rings_used() > self.looked_at {
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

/// Takes the lock of a segment; what it has, and the words of a ring.
fn serve(segment: &Segment, fd: RawFd) -> Result<(&'static Process, usize), SegmentError> {
    // SAFETY: atomics only.
    let process: &'static Process = unsafe { segment.at(0) }.ok_or(Refusal::TooSmall)?;
    let ring_words = layout::checked_ring_words(process.ring_words.load(Relaxed))?;
    match service::serve(fd)? {
        None => Ok((process, ring_words)),
        Some(other) => Err(SegmentError::Served(other)),
    }
}

/// Of the process that connected, else of the process that has the segment open.
fn pidfd(connection: Option<&UnixStream>, pid: u32) -> Option<OwnedFd> {
    let peer = connection.and_then(|connection| processes::peer(connection).ok());
    peer.or_else(|| processes::pidfd(pid).ok())
}

/// What the program has at the beginning of its segment, which is mapped whole.
fn process(segment: &Segment) -> &Process {
    // SAFETY: atomics only; the mapping lasts as long as the producer.
    unsafe { segment.at(0) }.expect("it was there")
}

/// Of all channels.
fn sum(process: &Process, count: impl Fn(&Channel) -> &AtomicU64) -> u64 {
    process.opened().map(|(_, channel)| count(channel).load(Relaxed)).fold(0, u64::wrapping_add)
}

impl Drop for Producer {
    fn drop(&mut self) {
        // Who comes later finds the words where they are, and that nobody serves them.
        for ring in self.rings.drain(..).flatten() {
            ring.unmap();
        }
        // SAFETY: nothing of it is used after this.
        unsafe { self.segment.unmap() };
    }
}
