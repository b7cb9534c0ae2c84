// SPDX-License-Identifier: Apache-2.0
use crate::attach::{attached_or_forked, undisturbed};
use crate::region::Region;
use crate::{clock, handlers, handover, ring_ownership};
use core::cell::Cell;
use core::sync::atomic::Ordering::Relaxed;
use tare_log_segment::layout::mode;
use tare_log_segment::record::{LONGEST, number_tag, short_tag, thread_record, wide_tag};
use tare_log_segment::{Channel, ChannelId, Configuration, Policy, Process, Writer};
use tare_shm::syscall;

/// What an event says besides its time.
#[derive(Clone, Copy, Debug)]
pub enum Payload<'bytes> {
    Number(i64),
    /// What is longer than `LONGEST` is cut off there.
    Bytes(&'bytes [u8]),
}

impl Payload<'_> {
    /// The number that handlers look at: of bytes, how many.
    pub fn number(self) -> i64 {
        match self {
            Self::Number(number) => number,
            Self::Bytes(bytes) => bytes.len() as i64,
        }
    }
}

/// A thread that the kernel does not know.
#[derive(Clone, Copy, Debug)]
pub struct Author {
    pub number: u32,
    /// Filled up with 0.
    pub name: [u64; 2],
}

/// What a handler needs to do something with an event.
#[derive(Clone, Copy)]
pub struct Scene<'all> {
    pub region: &'all Region,
    pub process: &'all Process,
    pub writer: &'all Writer,
    pub id: ChannelId,
    pub channel: &'all Channel,
    pub configuration: Configuration,
    /// Whose event it is, if it is not the thread's; taken with the first that goes into the ring.
    pub author: &'all Cell<Option<Author>>,
}

/// Between two looks at a full ring.
const PAUSE_NS: i64 = 50_000;

/// Logs what the fast path has left over. `writer` is the one that the thread used last; the
/// result is the one to use next.
#[cold]
#[inline(never)]
pub fn log(
    writer: Option<&'static Writer>,
    id: ChannelId,
    payload: Payload<'_>,
) -> Option<&'static Writer> {
    log_as(&mut None, writer, id, payload)
}

/// As `log`, for a runtime that lets threads of its own run on those of the kernel: an event
/// that goes into the ring stands behind a record of the thread `author`, which is then taken.
pub fn log_as(
    author: &mut Option<Author>,
    writer: Option<&'static Writer>,
    id: ChannelId,
    payload: Payload<'_>,
) -> Option<&'static Writer> {
    let (region, process) = attached_or_forked()?;
    let channel = process.channels.get(id as usize)?;
    let is_kept = id != 0 && process.modes[id as usize].load(Relaxed) != mode::NULL;
    let no_ring = || {
        process.unserved.fetch_add(is_kept.into(), Relaxed);
    };
    let known = writer.filter(|writer| writer.ring().is_some());
    let Some(writer) = known.or_else(|| ring_ownership::writer(region, process)) else {
        no_ring();
        return None;
    };
    if !is_kept {
        return Some(writer);
    }
    let table = &process.tables[region.place(writer)];
    let configuration = process.configuration_in(table, id);
    let author = Cell::from_mut(author);
    let scene = Scene { region, process, writer, id, channel, configuration, author };
    if writer.is_busy() {
        // Another handler that jumps out of this one would keep the ring for ever; and so it is for
        // each event, once one has jumped out of the fast path.
        undisturbed(|| {
            if let Some(other) = ring_ownership::borrow(region, process, writer) {
                handlers::handle(Scene { writer: other, ..scene }, payload);
                ring_ownership::give_back(other);
            } else {
                no_ring();
            }
        });
    } else {
        handlers::handle(scene, payload);
    }
    Some(writer)
}

/// An event as it stands in a ring. Its bytes stay where the program has them: stacks may be small.
pub struct Record<'bytes> {
    words: [u64; 4],
    length: usize,
    pub bytes: &'bytes [u8],
}

impl<'bytes> Record<'bytes> {
    pub fn new(ticks: u64, id: ChannelId, payload: Payload<'bytes>) -> Self {
        match payload {
            Payload::Number(number) => match short_tag(id, number) {
                Some(tag) => Self { words: [ticks, tag, 0, 0], length: 2, bytes: &[] },
                None => {
                    let words = [ticks, number_tag(id), number.cast_unsigned(), 0];
                    Self { words, length: 4, bytes: &[] }
                }
            },
            Payload::Bytes(bytes) => {
                let bytes = &bytes[..bytes.len().min(LONGEST)];
                let words = [ticks, wide_tag(id, bytes.len()), 0, 0];
                Self { words, length: 2, bytes }
            }
        }
    }

    /// All words but those of the bytes.
    pub fn words(&self) -> &[u64] {
        &self.words[..self.length]
    }
}

impl Scene<'_> {
    /// The time of an event that comes now.
    pub fn now(&self) -> u64 {
        clock::now(self.process)
    }

    /// Writes the event into the ring; where there is no room, its policy decides.
    pub fn put(&self, ticks: u64, payload: Payload<'_>) {
        let record = Record::new(ticks, self.id, payload);
        self.push(record.words(), record.bytes);
    }

    /// The same with an event as it stands in a ring, and the bytes behind it.
    pub fn push(&self, record: &[u64], bytes: &[u8]) {
        let Some(author) = self.author.get() else { return self.push_all(&[record], bytes) };
        let thread = thread_record(record[0], author.number, author.name);
        self.push_all(&[&thread, record], bytes);
    }

    /// The same with what has to stand before and behind it.
    pub fn push_all(&self, records: &[&[u64]], bytes: &[u8]) {
        loop {
            if self.writer.push_all(records, bytes) {
                self.author.set(None);
                break;
            }
            match self.configuration.policy {
                Policy::Wait if handover::is_served() => {
                    handover::wake();
                    syscall::sleep(PAUSE_NS);
                }
                Policy::Overwrite if self.writer.overwrite() => {}
                _ => {
                    self.lose(records[0][0]);
                    break;
                }
            }
        }
        if self.writer.is_filling() {
            handover::wake();
            handover::offer_again(self.region);
        }
    }

    /// Counts an event that is lost.
    pub fn lose(&self, ticks: u64) {
        self.writer.lose(ticks);
        self.channel.lost.fetch_add(1, Relaxed);
    }
}
