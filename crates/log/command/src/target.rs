// SPDX-License-Identifier: Apache-2.0
use crate::output::Output;
use std::collections::HashMap;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::atomic::Ordering::{Acquire, Relaxed};
use std::time::{Duration, Instant};
use tare_log_file::{Channels, Encoder, End, Header, How, Kind, OpenedChannel, ProcessInfo};
use tare_log_segment::layout::{
    KIND, LARGEST_RING, MOST_RINGS, Process, RingHead, SMALLEST_RING, VERSION, ring_at, ring_size,
    state,
};
use tare_log_segment::record::loss_record;
use tare_log_segment::{ChannelId, Configuration, Handler, Policy};
use tare_shm::{Access, Fill, Refusal, Segment, Word, service};

/// Words that become one block: 64 Ki events.
const BATCH: usize = 1 << 17;
/// Events wait no longer for others to be compressed with.
const PATIENCE: Duration = Duration::from_millis(100);

/// A program that logs. Whatever it wrote into its segment is copied once and checked.
pub struct Target {
    number: u32,
    pid: u32,
    fd: OwnedFd,
    segment: Segment,
    rings: Vec<Option<MappedRing>>,
    ring_words: usize,
    /// Becomes readable with the end of the process.
    pidfd: Option<OwnedFd>,
    /// Ends with the process, or when it executes another program.
    connection: Option<UnixStream>,
    /// Whether the file knows the process.
    is_named: bool,
    changes: Option<u32>,
    /// What the file knows of channels.
    known: HashMap<ChannelId, Configuration>,
    pub totals: Totals,
}

#[derive(Clone, Copy, Debug, Default)]
pub struct Totals {
    pub events: u64,
    pub lost: u64,
    pub unserved: u64,
}

struct MappedRing {
    part: Segment,
    since: Option<Instant>,
    tid: u32,
    thread: [u8; 16],
}

/// Buffers that all targets share.
#[derive(Default)]
pub struct Scratch {
    words: Vec<u64>,
    columns: Vec<u8>,
    encoder: Encoder,
}

/// Why a segment is not collected from.
pub enum Obstacle {
    Refused(Refusal),
    /// By this process, 0 where it is in another PID namespace.
    Served(u32),
}

impl From<Refusal> for Obstacle {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

impl Target {
    /// Takes the segment behind `fd` of process `pid`.
    pub fn adopt(
        fd: OwnedFd,
        pid: u32,
        connection: Option<UnixStream>,
        number: u32,
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
        if let Some(other) = service::serve(raw).map_err(Refusal::Failed)? {
            return Err(Obstacle::Served(other));
        }
        let target = Self {
            number,
            pid,
            fd,
            segment,
            rings: (0..MOST_RINGS).map(|_| None).collect(),
            ring_words,
            pidfd: pidfd(pid),
            connection,
            is_named: false,
            changes: None,
            known: HashMap::new(),
            totals: Totals::default(),
        };
        process.is_on.store(1, Relaxed);
        for (id, _) in process.opened() {
            process.renew(id);
        }
        Ok(target)
    }

    fn process(&self) -> &Process {
        // SAFETY: as in `adopt`; the mapping lasts as long as `self`.
        unsafe { self.segment.at(0) }.expect("it was there")
    }

    fn about(&self) -> ProcessInfo {
        let header = self.segment.header();
        let command = std::fs::read(format!("/proc/{}/cmdline", self.pid)).unwrap_or_default();
        let command = String::from_utf8_lossy(&command).replace('\0', " ").trim_end().to_owned();
        let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
        ProcessInfo {
            pid: header.owner_pid,
            start: header.owner_start,
            began_ticks: self.process().first.ticks.load(Relaxed),
            host: host.trim_end().to_owned(),
            command,
            clock: "tsc".to_owned(),
        }
    }

    /// Answers the program that it is served: it waits for this.
    pub fn welcome(&mut self) {
        if let Some(connection) = &mut self.connection {
            let _ = io::Write::write_all(connection, &[1]);
        }
    }

    /// Whether no event can follow: the process has ended, or executed another program.
    pub fn has_ended(&self) -> bool {
        let is_readable = |fd| {
            let mut poll = libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
            // SAFETY: one entry.
            unsafe { libc::poll(&mut poll, 1, 0) > 0 && poll.revents != 0 }
        };
        // A process of a PID namespace that this one does not see has no number here.
        match (&self.pidfd, &self.connection) {
            (Some(pidfd), _) => is_readable(pidfd.as_raw_fd()),
            (None, Some(connection)) => is_readable(connection.as_raw_fd()),
            (None, None) => true,
        }
    }

    /// Writes what the process is, once, and the channels that were opened or changed.
    fn introduce(&mut self, output: &mut Output) -> io::Result<()> {
        if !self.is_named {
            let about = serde_json::to_vec(&self.about()).unwrap_or_default();
            output.note(Kind::Process, self.number, &about)?;
            self.is_named = true;
        }
        let changes = self.process().changes.load(Acquire);
        if self.changes == Some(changes) {
            return Ok(());
        }
        let mut known = Vec::new();
        let mut opened = Vec::new();
        for (id, channel) in self.process().opened() {
            let configuration = Configuration::of(channel);
            if self.known.get(&id) == Some(&configuration) {
                continue;
            }
            let name: Vec<u8> = self.process().name(channel).take(4096).collect();
            known.push((id, configuration));
            opened.push(OpenedChannel {
                id,
                name: String::from_utf8_lossy(&name).into_owned(),
                tid: channel.tid.load(Relaxed),
                handler: name_of(Handler::ALL, configuration.handler),
                policy: name_of(Policy::ALL, configuration.policy),
            });
        }
        if !opened.is_empty() {
            let text = serde_json::to_vec(&Channels { channels: opened }).unwrap_or_default();
            output.note(Kind::Channels, self.number, &text)?;
        }
        self.known.extend(known);
        self.changes = Some(changes);
        Ok(())
    }

    /// Moves events from rings into the file; all of them where `all`, else those that make a
    /// block or have waited. Says how full the fullest ring was, from 0 to 1.
    pub fn drain(
        &mut self,
        output: &mut Output,
        scratch: &mut Scratch,
        all: bool,
    ) -> io::Result<f64> {
        self.introduce(output)?;
        let used = (self.process().rings_used.load(Acquire) as usize).min(MOST_RINGS);
        let mut fullest: f64 = 0.0;
        for place in 0..used {
            fullest = fullest.max(self.drain_ring(place, output, scratch, all)?);
        }
        Ok(fullest)
    }

    fn drain_ring(
        &mut self,
        place: usize,
        output: &mut Output,
        scratch: &mut Scratch,
        all: bool,
    ) -> io::Result<f64> {
        let capacity = self.ring_words;
        let Some(ring) = self.ring(place)? else { return Ok(0.0) };
        let (head, words) = parts(&ring.part, capacity);
        let tail = head.indices.tail();
        let ready = head.indices.head().load(Acquire).wrapping_sub(tail) as usize;
        if ready == 0 {
            ring.since = None;
            return Ok(0.0);
        }
        if ready > capacity {
            // No writer does so: what is there is given up.
            let _ = head.indices.free(tail, tail.wrapping_add(ready as u64));
            return Ok(0.0);
        }
        let fullness = ready as f64 / capacity as f64;
        let since = *ring.since.get_or_insert_with(Instant::now);
        if !all && ready < BATCH.min(capacity / 4) && since.elapsed() < PATIENCE {
            return Ok(fullness);
        }
        ring.since = None;
        scratch.words.clear();
        let first = tail as usize & (capacity - 1);
        let count = ready.min(BATCH);
        let until_end = count.min(capacity - first);
        let both = [&words[first..first + until_end], &words[..count - until_end]];
        for words in both {
            scratch.words.extend(words.iter().map(|word| word.load(Relaxed)));
        }

        let (mut tid, mut thread) = (ring.tid, ring.thread);
        let mut told = head.told.load(Relaxed);
        scratch.columns.clear();
        let summary = scratch.encoder.encode(&scratch.words, &mut told, &mut scratch.columns);
        let moved = match summary.words {
            // A batch may end within a record; words that are none are given up.
            0 => count,
            words => words,
        };
        let to = tail.wrapping_add(moved as u64);
        let stored = output.codec.pack(&scratch.columns)?;
        let header = Header {
            codec: output.codec,
            raw: scratch.columns.len() as u32,
            ring: place as u32,
            tid,
            from: tail,
            to,
            events: summary.events,
            first_ticks: summary.first_ticks,
            last_ticks: summary.last_ticks,
            thread,
            ..Header::of(Kind::Events, self.number)
        };
        output.block(header, &stored)?;
        self.totals.events += u64::from(summary.events);
        let Some(ring) = self.ring(place)? else { return Ok(0.0) };
        let (head, _) = parts(&ring.part, capacity);
        head.told.store(told, Relaxed);
        if let Some((next_tid, next_thread)) = summary.thread {
            (tid, thread) = (next_tid, next_thread);
            head.oldest_tid.store(tid, Relaxed);
        }
        // A thread that overwrites may have freed some of these words meanwhile.
        let mut from = tail;
        while let Err(now) = head.indices.free(from, to) {
            if to.wrapping_sub(now) as usize > moved {
                break;
            }
            from = now;
        }
        (ring.tid, ring.thread) = (tid, thread);
        Ok(fullness)
    }

    fn ring(&mut self, place: usize) -> io::Result<Option<&mut MappedRing>> {
        let slot = &mut self.rings[place];
        if slot.is_none() {
            let (offset, size) = (ring_at(place, self.ring_words), ring_size(self.ring_words));
            let access = Access::ReadWrite;
            let part = Segment::part(self.fd.as_raw_fd(), offset, size, access, Fill::Later);
            let Ok(part) = part else { return Ok(None) };
            *slot = Some(MappedRing { part, since: None, tid: 0, thread: [0; 16] });
            if let Some(ring) = slot {
                let (head, _) = parts(&ring.part, self.ring_words);
                ring.tid = head.oldest_tid.load(Relaxed);
            }
        }
        Ok(slot.as_mut())
    }

    /// Writes what was lost after the last event of each ring, which no record tells of.
    fn last_losses(&self, output: &mut Output, scratch: &mut Scratch) -> io::Result<()> {
        for (place, ring) in self.rings.iter().enumerate() {
            let Some(ring) = ring else { continue };
            let (head, _) = parts(&ring.part, self.ring_words);
            let (lost, mut told) = (head.indices.lost(), head.told.load(Relaxed));
            if lost == told {
                continue;
            }
            let (first, last) = (head.lost_first.load(Relaxed), head.lost_last.load(Relaxed));
            scratch.columns.clear();
            let record = loss_record(last, lost, first, last);
            scratch.encoder.encode(&record, &mut told, &mut scratch.columns);
            let tail = head.indices.tail();
            let header = Header {
                raw: scratch.columns.len() as u32,
                ring: place as u32,
                tid: ring.tid,
                from: tail,
                to: tail,
                first_ticks: last,
                last_ticks: last,
                thread: ring.thread,
                ..Header::of(Kind::Events, self.number)
            };
            output.block(header, &scratch.columns)?;
            head.told.store(told, Relaxed);
        }
        Ok(())
    }

    /// The last that is written of a process, whose events are all in the file.
    pub fn end(
        &mut self,
        output: &mut Output,
        scratch: &mut Scratch,
        is_left: bool,
    ) -> io::Result<()> {
        self.last_losses(output, scratch)?;
        let process = self.process();
        let how = match process.state.load(Acquire) {
            _ if is_left => How::Left,
            state::FINISHED => How::Finished,
            _ => How::Ended,
        };
        self.totals.unserved = process.unserved.load(Relaxed);
        let capacity = self.ring_words;
        let rings = self.rings.iter().flatten();
        self.totals.lost = rings.map(|ring| parts(&ring.part, capacity).0.indices.lost()).sum();
        let Totals { events, lost, unserved } = self.totals;
        let text = serde_json::to_vec(&End { how, events, lost, unserved }).unwrap_or_default();
        output.note(Kind::End, self.number, &text)
    }
}

fn parts(part: &Segment, capacity: usize) -> (&RingHead, &[Word]) {
    // SAFETY: atomics only; the mapping lasts as long as its ring.
    let head: Option<&RingHead> = unsafe { part.at(0) };
    let words = part.words(size_of::<RingHead>(), capacity);
    (head.expect("it was mapped whole"), words.expect("it was mapped whole"))
}

impl Drop for Target {
    fn drop(&mut self) {
        // Who comes later finds the words where they are, and that nobody serves them.
        for ring in self.rings.drain(..).flatten() {
            // SAFETY: references into it last no longer than the ring.
            unsafe { ring.part.unmap() };
        }
        // SAFETY: as above.
        unsafe { self.segment.unmap() };
    }
}

fn name_of<T: PartialEq>(all: &[(&str, T)], one: T) -> String {
    all.iter().find(|(_, other)| *other == one).map_or("", |(name, _)| name).to_owned()
}

fn pidfd(pid: u32) -> Option<OwnedFd> {
    // SAFETY: no memory is touched.
    let fd = unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) };
    // SAFETY: a new descriptor, owned by nobody else.
    (fd >= 0).then(|| unsafe { OwnedFd::from_raw_fd(fd as i32) })
}
