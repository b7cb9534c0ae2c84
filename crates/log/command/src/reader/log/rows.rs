// SPDX-License-Identifier: Apache-2.0
//! Events and losses of files, one by one.

use super::{Log, names};
use crate::reader::seen_ranges::{Ring, SeenRanges};
use crate::reader::virtual_thread_order::{
    CarrierIndex, MOST_HELD, Next, ReorderBuffer, has_to_wait,
};
use std::path::Path;
use tare_command::{Failure, ResultExt, regular_file, say};
use tare_log_file::{Event, Events, Header, Item, Kind, Mark, Payload, Reader};
use tare_log_segment::ChannelId;

/// One line of what is printed.
#[derive(Clone, Copy, Debug)]
pub struct Row<'log> {
    /// Since the Unix epoch; `None` where the file has too few readings of the clocks.
    pub time_ns: Option<i64>,
    pub ticks: u64,
    /// Its index in [`Log::processes`].
    pub process: usize,
    /// Rows of one ring come in the order in which they were written.
    pub ring: u32,
    /// It is a virtual thread's, or of all of the process, which may be in any ring next time.
    /// These rows come in the order of their times.
    pub is_carried: bool,
    pub pid: u32,
    pub tid: u32,
    pub thread: &'log str,
    pub what: What<'log>,
}

#[cfg(test)]
impl<'log> Row<'log> {
    /// A row of a thread, with zeros for everything that a test does not look at.
    pub fn of_thread(thread: &'log str, what: What<'log>) -> Self {
        let (time_ns, is_carried) = (None, false);
        Self { time_ns, ticks: 0, process: 0, ring: 0, is_carried, pid: 0, tid: 0, thread, what }
    }
}

#[derive(Clone, Copy, Debug)]
pub enum What<'log> {
    Event {
        id: ChannelId,
        channel: &'log str,
        payload: Payload<'log>,
    },
    /// So many events of the thread were lost, the first and the last of them at these ticks.
    Loss {
        lost: u64,
        first: u64,
        last: u64,
    },
    /// Events are missing here, and after it until these ticks: a loss says how many, or another
    /// file has them.
    Gap {
        last: u64,
    },
}

/// Why not every row was seen.
pub enum Ended<E> {
    Enough(E),
    Failed(Failure),
}

impl Log {
    /// Calls `each` with every row, in the order of the file: block by block, each of one ring.
    /// Rows of virtual threads wait until all of their process from before have come. Ends early
    /// when `each` says so by an error.
    pub fn rows<E>(&self, mut each: impl FnMut(Row<'_>) -> Result<(), E>) -> Result<(), Ended<E>> {
        let mut seen = SeenRanges::default();
        let carriers = self.carriers().map_err(Ended::Failed)?;
        let mut buffer = ReorderBuffer::new(carriers, MOST_HELD);
        for (file, path) in self.paths.iter().enumerate() {
            self.rows_of((file, path), &mut seen, &mut buffer, &mut each)?;
        }
        for process in buffer.end() {
            self.release(&mut buffer, process, &mut each)?;
        }
        if buffer.is_disordered {
            say(format_args!(
                "{}: some events of virtual threads are not in the order of their times, because \
                 more than {} MiB of them had to be sorted at once",
                names(&self.paths),
                MOST_HELD >> 20
            ));
        }
        Ok(())
    }

    /// Of processes with virtual threads.
    fn carriers(&self) -> Result<CarrierIndex, Failure> {
        let mut carriers = CarrierIndex::default();
        let files = self.paths.iter().enumerate().filter(|_| !self.carrying.is_empty());
        for (file, path) in files {
            for block in Reader::new(regular_file::open(path).or_failed(path.display())?) {
                let block = block.or_failed(path.display())?;
                let ring = self.ring_of(file, &block.header);
                if let Some(ring) = ring.filter(|ring| self.carrying.contains(&ring.0)) {
                    let events = Events::of(&block);
                    let items = events.as_ref().ok().and_then(|events| events.items().ok());
                    carriers.add(ring, &block.header, &items.unwrap_or_default());
                }
            }
        }
        Ok(carriers)
    }

    /// Of a block of events.
    fn ring_of(&self, file: usize, header: &Header) -> Option<Ring> {
        let process = self.indices.get(&(file, header.process))?;
        (header.kind == Kind::Events).then_some((*process, header.ring))
    }

    fn rows_of<E>(
        &self,
        (file, path): (usize, &Path),
        seen: &mut SeenRanges,
        buffer: &mut ReorderBuffer,
        each: &mut impl FnMut(Row<'_>) -> Result<(), E>,
    ) -> Result<(), Ended<E>> {
        let failed = |error| Ended::Failed(Failure::work(format_args!("{error}")));
        let mut unread = 0;
        for block in Reader::new(regular_file::open(path).map_err(failed)?) {
            let block = block.map_err(failed)?;
            let header = &block.header;
            let Some(ring) = self.ring_of(file, header) else { continue };
            let has_gap = header.events > 0 && seen.lacks(ring, header.from);
            if !buffer.read(ring) || seen.add(ring, header.from, header.to) {
                continue;
            }
            let events = Events::of(&block);
            let Ok(items) = events.as_ref().map_err(|invalid| *invalid).and_then(Events::items)
            else {
                unread += 1;
                continue;
            };
            let (mut tid, mut name) = (header.tid, header.thread);
            if has_gap {
                let what = What::Gap { last: header.first_ticks };
                let row = self.row(ring, (tid, &name), header.first_ticks, what);
                each(row).map_err(Ended::Enough)?;
            }
            for item in items {
                let (ticks, what) = match item {
                    Item::Event(Event { ticks, channel, payload }) if has_to_wait(ring, tid) => {
                        buffer.hold((ring, ticks), (tid, name), (channel, payload.into()));
                        continue;
                    }
                    Item::Event(Event { ticks, channel: id, payload }) => {
                        (ticks, What::Event { id, channel: self.name(ring.0, id), payload })
                    }
                    Item::Mark(Mark::Loss { ticks, lost, first, last }) => {
                        (ticks, What::Loss { lost, first, last })
                    }
                    Item::Mark(Mark::Thread { tid: next, name: text, .. }) => {
                        (tid, name) = (next, text);
                        continue;
                    }
                };
                each(self.row(ring, (tid, &name), ticks, what)).map_err(Ended::Enough)?;
            }
            self.release(buffer, ring.0, each)?;
        }
        if unread > 0 {
            say(format_args!(
                "{}: {unread} blocks of events cannot be read, though their checksums are right",
                path.display()
            ));
        }
        Ok(())
    }

    /// Calls `each` with the rows that have waited long enough.
    fn release<E>(
        &self,
        buffer: &mut ReorderBuffer,
        process: usize,
        each: &mut impl FnMut(Row<'_>) -> Result<(), E>,
    ) -> Result<(), Ended<E>> {
        let until = buffer.until(process);
        while let Some(next) = buffer.next(process, until) {
            let row = match &next {
                Next::Event(held) => {
                    let (id, channel) = (held.id, self.name(process, held.id));
                    let what = What::Event { id, channel, payload: held.value.payload() };
                    self.row(held.ring, (held.tid, &held.thread), held.ticks, what)
                }
                Next::Gap(first, last) => {
                    let what = What::Gap { last: *last };
                    self.row((process, 0), (0, &[0; 16]), *first, what)
                }
            };
            each(Row { is_carried: true, ..row }).map_err(Ended::Enough)?;
        }
        Ok(())
    }

    fn row<'log>(
        &'log self,
        (process, ring): Ring,
        (tid, name): (u32, &'log [u8; 16]),
        ticks: u64,
        what: What<'log>,
    ) -> Row<'log> {
        Row {
            time_ns: self.times(process).at(ticks),
            ticks,
            process,
            ring,
            is_carried: false,
            pid: self.processes[process].pid,
            tid,
            thread: text(name),
            what,
        }
    }
}

/// A thread's name, which the kernel may have cut within a letter.
fn text(name: &[u8; 16]) -> &str {
    let end = name.iter().position(|byte| *byte == 0).unwrap_or(name.len());
    name[..end].utf8_chunks().next().map_or("", |chunk| chunk.valid())
}
