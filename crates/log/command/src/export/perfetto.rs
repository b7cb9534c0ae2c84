// SPDX-License-Identifier: Apache-2.0
//! Perfetto's protocol buffers (perfetto/trace/perfetto_trace.proto): a track a thread, slices
//! for spans, instants and counters for the rest, losses on a track of their own.

use super::protobuf::Message;
use super::{Exporter, Source};
use crate::reader::log::{Row, What};
use crate::reader::spans::SpanEvent;
use std::collections::{HashMap, HashSet};
use std::io::{self, Write};
use tare_log_file::Payload;

/// Fields, by message.
mod packet {
    pub const CLOCK_SNAPSHOT: u64 = 6;
    pub const TIMESTAMP: u64 = 8;
    pub const SEQUENCE: u64 = 10;
    pub const TRACK_EVENT: u64 = 11;
    pub const INTERNED: u64 = 12;
    pub const SEQUENCE_FLAGS: u64 = 13;
    pub const DEFAULTS: u64 = 59;
    pub const TRACK: u64 = 60;
}
mod track {
    pub const UUID: u64 = 1;
    pub const NAME: u64 = 2;
    pub const PROCESS: u64 = 3;
    pub const THREAD: u64 = 4;
    pub const PARENT: u64 = 5;
    pub const COUNTER: u64 = 8;
}
mod event {
    pub const ANNOTATION: u64 = 4;
    pub const TYPE: u64 = 9;
    pub const NAME_ID: u64 = 10;
    pub const TRACK: u64 = 11;
    pub const NAME: u64 = 23;
    pub const COUNTER_VALUE: u64 = 30;
    pub const BEGIN: u64 = 1;
    pub const END: u64 = 2;
    pub const INSTANT: u64 = 3;
    pub const COUNTER: u64 = 4;
}
mod annotation {
    pub const NAME_ID: u64 = 1;
    pub const NUMBER: u64 = 4;
    pub const TEXT: u64 = 6;
}
mod interned {
    pub const EVENT_NAMES: u64 = 2;
    pub const ANNOTATION_NAMES: u64 = 3;
}
/// The kernel's clocks by Perfetto's numbers.
mod clock {
    pub const REALTIME: u64 = 1;
    pub const MONOTONIC_RAW: u64 = 5;
}

/// All packets are of one sequence, whose names are interned.
const SEQUENCE: u64 = 1;
const STATE_CLEARED: u64 = 1;
const NEEDS_STATE: u64 = 2;

/// What payloads are called, in the order of their interned numbers.
const ANNOTATIONS: [&str; 3] = ["payload", "end payload", "end"];
const PAYLOAD: u64 = 1;
const END_PAYLOAD: u64 = 2;
const END_IS: u64 = 3;

pub struct Perfetto<'log, Out> {
    source: Source<'log>,
    out: Out,
    has_begun: bool,
    tracks: HashSet<u64>,
    names: HashMap<String, u64>,
}

impl<'log, Out: Write> Perfetto<'log, Out> {
    pub fn new(source: Source<'log>, out: Out) -> Self {
        Self { source, out, has_begun: false, tracks: HashSet::new(), names: HashMap::new() }
    }

    fn packet(&mut self, fill: impl FnOnce(&mut Message)) -> io::Result<()> {
        let mut trace = Message::default();
        trace.message(1, |packet| {
            fill(packet);
            packet.number(packet::SEQUENCE, SEQUENCE);
        });
        self.out.write_all(trace.as_bytes())
    }

    /// Times are those of CLOCK_REALTIME; the readings in the file relate it to the others.
    fn begin(&mut self) -> io::Result<()> {
        self.has_begun = true;
        self.packet(|packet| {
            packet.number(packet::SEQUENCE_FLAGS, STATE_CLEARED);
            packet.message(packet::DEFAULTS, |defaults| {
                defaults.number(58, clock::REALTIME);
            });
            packet.message(packet::INTERNED, |names| {
                for (id, name) in (1..).zip(ANNOTATIONS) {
                    names.message(interned::ANNOTATION_NAMES, |entry| {
                        entry.number(1, id).text(2, name);
                    });
                }
            });
        })?;
        // Clocks of two machines would contradict each other.
        for reading in self.source.log.readings() {
            self.packet(|packet| {
                packet.message(packet::CLOCK_SNAPSHOT, |snapshot| {
                    for (id, time) in [
                        (clock::REALTIME, reading.realtime_ns),
                        (clock::MONOTONIC_RAW, reading.monotonic_ns),
                    ] {
                        snapshot.message(1, |clock| {
                            clock.number(1, id).signed(2, time);
                        });
                    }
                    snapshot.number(2, clock::REALTIME);
                });
            })?;
        }
        Ok(())
    }

    /// Describes a track before its first event.
    fn track(&mut self, uuid: u64, fill: impl FnOnce(&mut Message)) -> io::Result<u64> {
        if self.tracks.insert(uuid) {
            self.packet(|packet| {
                packet.message(packet::TRACK, |track| {
                    track.number(track::UUID, uuid);
                    fill(track);
                });
            })?;
        }
        Ok(uuid)
    }

    fn process(&mut self, index: usize) -> io::Result<u64> {
        let Source { log, pids, .. } = self.source;
        let (info, pid) = (&log.processes()[index], pids[index]);
        let name = self.source.program(index).to_owned();
        self.track(numbered(index, 0, 0), |track| {
            track.message(track::PROCESS, |process| {
                process.number(1, pid.into());
                for word in info.command.split(' ').filter(|word| !word.is_empty()) {
                    process.text(2, word);
                }
                process.text(6, &name);
            });
        })
    }

    fn thread(&mut self, row: &Row<'_>) -> io::Result<u64> {
        let uuid = numbered(row.process, 1, row.tid);
        if self.tracks.contains(&uuid) {
            return Ok(uuid);
        }
        let parent = self.process(row.process)?;
        let pid = self.source.pids[row.process];
        self.track(uuid, |track| {
            track.number(track::PARENT, parent);
            track.message(track::THREAD, |thread| {
                thread.number(1, pid.into()).number(2, row.tid.into()).text(5, row.thread);
            });
        })
    }

    fn counter(&mut self, process: usize, id: u16, name: &str) -> io::Result<u64> {
        let parent = self.process(process)?;
        self.track(numbered(process, 3, id.into()), |track| {
            track.number(track::PARENT, parent).text(track::NAME, name);
            track.message(track::COUNTER, |_| {});
        })
    }

    /// The name's number, and whether the packet that it is asked for has to tell it.
    fn name(&mut self, name: &str) -> (u64, bool) {
        if let Some(id) = self.names.get(name) {
            return (*id, false);
        }
        let id = self.names.len() as u64 + 1;
        self.names.insert(name.to_owned(), id);
        (id, true)
    }

    fn event(
        &mut self,
        time_ns: i64,
        (track, kind): (u64, u64),
        name: Option<&str>,
        fill: impl FnOnce(&mut Message),
    ) -> io::Result<()> {
        let id = name.map(|name| self.name(name));
        self.packet(|packet| {
            packet.signed(packet::TIMESTAMP, time_ns);
            packet.number(packet::SEQUENCE_FLAGS, NEEDS_STATE);
            if let (Some(name), Some((id, true))) = (name, id) {
                packet.message(packet::INTERNED, |names| {
                    names.message(interned::EVENT_NAMES, |entry| {
                        entry.number(1, id).text(2, name);
                    });
                });
            }
            packet.message(packet::TRACK_EVENT, |event| {
                event.number(event::TYPE, kind).number(event::TRACK, track);
                if let Some((id, _)) = id {
                    event.number(event::NAME_ID, id);
                }
                fill(event);
            });
        })
    }

    fn loss(&mut self, row: &Row<'_>, lost: u64, first: u64, last: u64) -> io::Result<()> {
        let parent = self.thread(row)?;
        let track = self.track(numbered(row.process, 2, row.tid), |track| {
            track.number(track::PARENT, parent).text(track::NAME, "lost events");
        })?;
        let times = self.source.log.times(row.process);
        let ends = [first, last].map(|ticks| times.at(ticks).unwrap_or_default());
        let name = format!("{lost} events lost");
        // A name that comes once is not worth a number.
        self.event(ends[0], (track, event::BEGIN), None, |event| {
            event.text(event::NAME, &name);
        })?;
        self.event(ends[1].max(ends[0]), (track, event::END), None, |_| {})
    }
}

impl<Out: Write> Exporter for Perfetto<'_, Out> {
    fn add(&mut self, row: &Row<'_>, span_event: SpanEvent<'_>) -> io::Result<()> {
        if !self.has_begun {
            self.begin()?;
        }
        let time = row.time_ns.unwrap_or_default();
        match (span_event, row.what) {
            (SpanEvent::Begin(open), What::Event { payload, .. }) => {
                let track = self.thread(row)?;
                let name = &self.source.roles.names()[open.name];
                self.event(time, (track, event::BEGIN), Some(name), |event| {
                    annotate(event, PAYLOAD, payload);
                })
            }
            (SpanEvent::End(..), What::Event { payload, .. }) => {
                let track = self.thread(row)?;
                self.event(time, (track, event::END), None, |event| {
                    annotate(event, END_PAYLOAD, payload);
                })
            }
            // The next end on the track would be taken for its.
            (SpanEvent::Cut(_), _) => {
                let track = self.thread(row)?;
                self.event(time, (track, event::END), None, |event| {
                    annotate(event, END_IS, Payload::Bytes(b"not known"));
                })
            }
            (
                SpanEvent::Event(_) | SpanEvent::Unbegun,
                What::Event { id, channel, payload: Payload::Number(number) },
            ) if self.source.is_counter(row.process, id) => {
                let track = self.counter(row.process, id, channel)?;
                self.event(time, (track, event::COUNTER), None, |event| {
                    event.signed(event::COUNTER_VALUE, number);
                })
            }
            (SpanEvent::Event(_) | SpanEvent::Unbegun, What::Event { channel, payload, .. }) => {
                let track = self.thread(row)?;
                self.event(time, (track, event::INSTANT), Some(channel), |event| {
                    annotate(event, PAYLOAD, payload);
                })
            }
            (SpanEvent::Loss, What::Loss { lost, first, last }) => {
                self.loss(row, lost, first, last)
            }
            // A slice without an end is shown as one.
            _ => Ok(()),
        }
    }

    fn finish(&mut self) -> io::Result<()> {
        if !self.has_begun {
            self.begin()?;
        }
        self.out.flush()
    }
}

/// A track's number: of a process (kind 0), a thread, its losses, or a channel's counter.
fn numbered(process: usize, kind: u64, of: u32) -> u64 {
    (process as u64 + 1) << 34 | kind << 32 | u64::from(of)
}

fn annotate(event: &mut Message, name: u64, payload: Payload<'_>) {
    event.message(event::ANNOTATION, |annotation| {
        annotation.number(annotation::NAME_ID, name);
        match payload {
            Payload::Number(number) => annotation.signed(annotation::NUMBER, number),
            Payload::Bytes(bytes) => {
                annotation.text(annotation::TEXT, &String::from_utf8_lossy(bytes))
            }
        };
    });
}
