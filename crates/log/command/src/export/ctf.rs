// SPDX-License-Identifier: Apache-2.0
//! The Common Trace Format, version 1.8: a folder with `metadata` and a stream a ring, whose
//! packets are of one thread each. Beginnings and ends of spans are events like all others.
//! Times within a stream never fall back: where those of a ring do, since a handler has kept an
//! event back or the clock was set, the ring goes on in another stream.

use super::{Exporter, Source};
use crate::reader::log::{Row, What};
use crate::reader::spans::SpanEvent;
use std::collections::{BTreeMap, HashMap};
use std::fmt::Write as _;
use std::io::{self, Write};
use tare_command::NewFolder;
use tare_log_file::Payload;

const MAGIC: u32 = 0xc1fc_1fc1;

/// Bytes of a packet before its events.
const HEADER: usize = 88;

/// A packet is written when it is as large; all are when they are together.
const LARGEST: usize = 1 << 20;
const TOGETHER: usize = 1 << 26;

pub struct Ctf<'log> {
    source: Source<'log>,
    folder: &'log NewFolder,
    /// Numbers of event classes by channel name: this one has numbers, the next one bytes.
    classes: HashMap<&'log str, u32>,
    /// By number.
    streams: Vec<Stream>,
    /// Numbers of those of each ring.
    of_rings: HashMap<(usize, u32), Vec<usize>>,
    /// That events are added to, by stream: what virtual threads log goes from ring to ring.
    packets: BTreeMap<usize, Packet>,
    /// Bytes of their events.
    waiting: usize,
}

/// Streams besides the first of each ring. A file may be made so that its times always fall.
const MOST_FALLS: usize = 1000;

/// What packets of a stream go on with.
#[derive(Clone, Copy, Default)]
struct Stream {
    packets: u64,
    /// Events lost since the stream's beginning.
    lost: u64,
    /// The last.
    time: u64,
}

struct Packet {
    pid: u32,
    tid: u32,
    thread: [u8; 16],
    begin: u64,
    events: Vec<u8>,
}

impl<'log> Ctf<'log> {
    pub fn new(source: Source<'log>, folder: &'log NewFolder) -> io::Result<Self> {
        let mut names: Vec<&str> =
            source.log.channels().map(|(_, channel)| channel.name.as_str()).collect();
        // Events of a channel whose name the file no longer has.
        names.push("");
        names.sort_unstable();
        names.dedup();
        let classes: HashMap<_, _> = names.into_iter().zip((0..).step_by(2)).collect();
        let metadata = metadata(&source, &classes);
        folder.append("metadata")?.write_all(metadata.as_bytes())?;
        let (streams, of_rings) = (Vec::new(), HashMap::new());
        let (packets, waiting) = (BTreeMap::new(), 0);
        Ok(Self { source, folder, classes, streams, of_rings, packets, waiting })
    }

    /// Of those of the row's ring, the one that has come nearest to the time without passing it.
    fn stream(&mut self, row: &Row<'_>, time: u64) -> io::Result<usize> {
        let of_ring = self.of_rings.entry((row.process, row.ring)).or_default();
        let before = of_ring.iter().copied().filter(|number| self.streams[*number].time <= time);
        if let Some(nearest) = before.max_by_key(|number| self.streams[*number].time) {
            return Ok(nearest);
        }
        of_ring.push(self.streams.len());
        self.streams.push(Stream::default());
        if self.streams.len() > MOST_FALLS + self.of_rings.len() {
            return Err(io::Error::other(format!(
                "times fall back more than {MOST_FALLS} times within threads: use another format"
            )));
        }
        Ok(self.streams.len() - 1)
    }

    fn event(&mut self, row: &Row<'_>, channel: &str, payload: Payload<'_>) -> io::Result<()> {
        let time = nanoseconds(row.time_ns);
        let stream = self.stream(row, time)?;
        if self.packets.get(&stream).is_some_and(|packet| packet.tid != row.tid) {
            self.flush(stream)?;
        }
        self.streams[stream].time = time;
        let class = self.classes.get(channel).copied().unwrap_or_default();
        let packet = self.packets.entry(stream).or_insert_with(|| packet_of(row, time));
        let events = &mut packet.events;
        let before = events.len();
        let is_bytes = matches!(payload, Payload::Bytes(_));
        events.extend((class + u32::from(is_bytes)).to_le_bytes());
        events.extend(time.to_le_bytes());
        match payload {
            Payload::Number(number) => events.extend(number.to_le_bytes()),
            Payload::Bytes(bytes) => {
                events.extend((bytes.len() as u32).to_le_bytes());
                events.extend(bytes);
            }
        }
        let length = events.len();
        self.waiting += length - before;
        if self.waiting >= TOGETHER {
            self.flush_all()
        } else if length >= LARGEST {
            self.flush(stream)
        } else {
            Ok(())
        }
    }

    /// Losses are told by the packet after them: an empty one, so that their time is known.
    fn loss(&mut self, row: &Row<'_>, lost: u64, first: u64, last: u64) -> io::Result<()> {
        let times = self.source.log.times(row.process);
        let [first, last] = [first, last].map(|ticks| nanoseconds(times.at(ticks)));
        let stream = self.stream(row, first)?;
        self.flush(stream)?;
        self.streams[stream].time = last.max(first);
        let sum = &mut self.streams[stream].lost;
        *sum = sum.saturating_add(lost);
        self.packets.insert(stream, packet_of(row, first));
        self.flush(stream)
    }

    fn flush_all(&mut self) -> io::Result<()> {
        while let Some(stream) = self.packets.keys().next() {
            self.flush(*stream)?;
        }
        Ok(())
    }

    fn flush(&mut self, number: usize) -> io::Result<()> {
        let Some(packet) = self.packets.remove(&number) else { return Ok(()) };
        self.waiting -= packet.events.len();
        let stream = &mut self.streams[number];
        let bits = 8 * (HEADER + packet.events.len()) as u64;
        let mut bytes = Vec::with_capacity(HEADER + packet.events.len());
        bytes.extend(MAGIC.to_le_bytes());
        bytes.extend(0u32.to_le_bytes());
        bytes.extend((number as u64).to_le_bytes());
        for number in [packet.begin, stream.time, bits, bits, stream.packets, stream.lost] {
            bytes.extend(number.to_le_bytes());
        }
        bytes.extend(packet.pid.to_le_bytes());
        bytes.extend(packet.tid.to_le_bytes());
        bytes.extend(packet.thread);
        debug_assert_eq!(bytes.len(), HEADER);
        bytes.extend(&packet.events);
        stream.packets += 1;
        // Not kept open: there may be more rings than a process may have files.
        self.folder.append(&format!("stream_{number}"))?.write_all(&bytes)
    }
}

impl Exporter for Ctf<'_> {
    fn add(&mut self, row: &Row<'_>, span_event: SpanEvent<'_>) -> io::Result<()> {
        match (span_event, row.what) {
            // Not of rows of their own.
            (SpanEvent::Cut(_) | SpanEvent::Left(_), _) | (_, What::Gap { .. }) => Ok(()),
            (_, What::Event { channel, payload, .. }) => self.event(row, channel, payload),
            (_, What::Loss { lost, first, last }) => self.loss(row, lost, first, last),
        }
    }

    fn finish(&mut self) -> io::Result<()> {
        self.flush_all()
    }
}

/// Since the Unix epoch.
fn nanoseconds(time_ns: Option<i64>) -> u64 {
    time_ns.unwrap_or_default().max(0) as u64
}

fn packet_of(row: &Row<'_>, begin: u64) -> Packet {
    let mut thread = [0; 16];
    let name = row.thread.as_bytes();
    let length = name.len().min(thread.len() - 1);
    thread[..length].copy_from_slice(&name[..length]);
    Packet { pid: row.pid, tid: row.tid, thread, begin, events: Vec::new() }
}

/// What the streams are made of, in the format's own language. The context of a packet has the
/// names that LTTng gives, which viewers know.
fn metadata(source: &Source<'_>, classes: &HashMap<&str, u32>) -> String {
    let host = source.log.processes().first().map_or("", |process| process.host.as_str());
    let mut text = format!(
        r#"/* CTF 1.8 */
typealias integer {{ size = 8; align = 8; signed = false; encoding = UTF8; }} := letter;
typealias integer {{ size = 8; align = 8; signed = false; encoding = UTF8; }} := uint8_t;
typealias integer {{ size = 32; align = 8; signed = false; }} := uint32_t;
typealias integer {{ size = 64; align = 8; signed = false; }} := uint64_t;
typealias integer {{ size = 32; align = 8; signed = true; }} := int32_t;
typealias integer {{ size = 64; align = 8; signed = true; }} := int64_t;
trace {{
    major = 1;
    minor = 8;
    byte_order = le;
    packet.header := struct {{ uint32_t magic; uint32_t stream_id; uint64_t stream_instance_id; }};
}};
env {{
    hostname = {host};
    tracer_name = "tare log";
    tracer_major = 1;
    tracer_minor = 0;
}};
clock {{
    name = realtime;
    description = "Since the Unix epoch";
    freq = 1000000000;
    offset_s = 0;
    absolute = TRUE;
}};
typealias integer {{ size = 64; align = 8; signed = false; map = clock.realtime.value; }} := time_t;
stream {{
    id = 0;
    event.header := struct {{ uint32_t id; time_t timestamp; }};
    packet.context := struct {{
        time_t timestamp_begin;
        time_t timestamp_end;
        uint64_t content_size;
        uint64_t packet_size;
        uint64_t packet_seq_num;
        uint64_t events_discarded;
        int32_t vpid;
        int32_t vtid;
        letter procname[16];
    }};
}};
"#,
        host = quoted(host),
    );
    let mut classes: Vec<_> = classes.iter().collect();
    classes.sort_unstable_by_key(|(_, id)| **id);
    for (name, id) in classes {
        let name = quoted(name);
        let _ = write!(
            text,
            "event {{ id = {id}; name = {name}; stream_id = 0; \
             fields := struct {{ int64_t payload; }}; }};\n\
             event {{ id = {}; name = {name}; stream_id = 0; \
             fields := struct {{ uint32_t length; letter text[length]; }}; }};\n",
            id + 1
        );
    }
    text
}

/// As a string of C.
fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for letter in text.chars() {
        match letter {
            '"' | '\\' => quoted.extend(['\\', letter]),
            _ if letter.is_control() => {
                let _ = write!(quoted, "\\{:03o}", letter as u32);
            }
            _ => quoted.push(letter),
        }
    }
    quoted.push('"');
    quoted
}
