// SPDX-License-Identifier: Apache-2.0
use crate::output::Output;
use crate::ring::Ring;
use std::collections::HashMap;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::atomic::Ordering::{Acquire, Relaxed};
use tare_log_file::{
    Channels, Codec, Encoder, End, Header, How, Kind, OpenedChannel, ProcessInfo, Summary,
};
use tare_log_segment::layout::{
    KIND, LARGEST_RING, MOST_RINGS, Process, SMALLEST_RING, VERSION, state,
};
use tare_log_segment::{ChannelId, Configuration, Handler, Policy};
use tare_shm::{Access, Refusal, Segment, service};

/// A program that logs. Whatever it wrote into its segment is copied once and checked.
pub struct Target {
    number: u32,
    pid: u32,
    fd: OwnedFd,
    segment: Segment,
    rings: Vec<Option<Ring>>,
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

/// Buffers that all targets share.
#[derive(Default)]
pub struct Scratch {
    words: Vec<u64>,
    columns: Vec<u8>,
    encoder: Encoder,
}

impl Scratch {
    /// The words as columns, and these as they are stored.
    fn pack(&mut self, told: &mut u64, codec: Codec) -> io::Result<(Summary, Vec<u8>)> {
        self.columns.clear();
        let summary = self.encoder.encode(&self.words, told, &mut self.columns);
        Ok((summary, codec.pack(&self.columns)?))
    }
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
        let (fd, words) = (self.fd.as_raw_fd(), self.ring_words);
        let slot = &mut self.rings[place];
        if slot.is_none() {
            *slot = Ring::map(fd, place, words);
        }
        let Some(ring) = slot else { return Ok(0.0) };
        let (fullness, is_time) = ring.look(all);
        if !is_time {
            return Ok(fullness);
        }
        let from = ring.copy(&mut scratch.words);
        if scratch.words.is_empty() {
            return Ok(fullness);
        }
        let before = ring.told();
        let mut told = before;
        let (summary, stored) = scratch.pack(&mut told, output.codec)?;
        // A batch may end within a record; words that are none are given up.
        let taken = if summary.words == 0 { scratch.words.len() } else { summary.words };
        let header = Header {
            from,
            to: from.wrapping_add(taken as u64),
            ..header(self.number, place, ring, &summary, scratch.columns.len(), output.codec)
        };
        output.block(header, &stored)?;
        ring.free(from, &scratch.words[..taken], told, summary.thread);
        self.totals.events += u64::from(summary.events);
        self.totals.lost += told - before;
        Ok(fullness)
    }

    /// Writes what was lost after the last event of each ring, which no record tells of.
    fn last_losses(&mut self, output: &mut Output, scratch: &mut Scratch) -> io::Result<()> {
        for (place, ring) in self.rings.iter_mut().enumerate() {
            let Some(ring) = ring else { continue };
            let Some((from, record)) = ring.last_loss() else { continue };
            let before = ring.told();
            let mut told = before;
            scratch.words.clear();
            scratch.words.extend(record);
            let (summary, stored) = scratch.pack(&mut told, output.codec)?;
            let header =
                header(self.number, place, ring, &summary, scratch.columns.len(), output.codec);
            output.block(Header { from, to: from, ..header }, &stored)?;
            ring.free(from, &[], told, None);
            self.totals.lost += told - before;
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
        let Totals { events, lost, unserved } = self.totals;
        let text = serde_json::to_vec(&End { how, events, lost, unserved }).unwrap_or_default();
        output.note(Kind::End, self.number, &text)
    }
}

/// What a block of events says of them.
fn header(
    process: u32,
    place: usize,
    ring: &Ring,
    summary: &Summary,
    raw: usize,
    codec: Codec,
) -> Header {
    Header {
        codec,
        raw: raw as u32,
        ring: place as u32,
        tid: ring.tid,
        thread: ring.thread,
        events: summary.events,
        first_ticks: summary.first_ticks,
        last_ticks: summary.last_ticks,
        ..Header::of(Kind::Events, process)
    }
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

fn pidfd(pid: u32) -> Option<OwnedFd> {
    // SAFETY: no memory is touched.
    let fd = unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) };
    // SAFETY: a new descriptor, owned by nobody else.
    (fd >= 0).then(|| unsafe { OwnedFd::from_raw_fd(fd as i32) })
}
