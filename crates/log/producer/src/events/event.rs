// SPDX-License-Identifier: Apache-2.0
use crate::program::clock;
use crate::segment::region::Region;
use crate::segment::{handover, ring_ownership};
use core::cell::Cell;
use core::sync::atomic::Ordering::Relaxed;
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
pub struct HandlerContext<'all> {
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

impl HandlerContext<'_> {
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
                    // The collector empties the rings that it knows of.
                    self.process.use_ring(self.region.place(self.writer));
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

    /// The thread whose event it is, and its name.
    pub fn whose(&self) -> (u32, [u64; 2]) {
        if let Some(author) = self.author.get() {
            return (author.number, author.name);
        }
        self.writer.ring().map_or((0, [0; 2]), |ring| {
            let name = ring.owner_name.each_ref().map(|half| half.load(Relaxed));
            (ring_ownership::tid(ring.owner.load(Relaxed)), name)
        })
    }
}
