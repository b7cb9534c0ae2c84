// SPDX-License-Identifier: Apache-2.0
use super::sparse_copy;
use std::os::fd::RawFd;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::fence;
use std::time::{Duration, Instant};
use tare_log_file::{Header, Kind, Packed, Summary};
use tare_log_segment::layout::{RingHead, ring_at, ring_size};
use tare_log_segment::record::{Records, is_virtual, loss_record, whole};
use tare_log_segment::{Known, Oldest};
use tare_shm::{Access, Fill, Segment};

/// Words that become one block: 64 Ki events.
pub const BATCH: usize = 1 << 17;
/// So much of a ring is a block, too: at its first eighth a writer wakes the collector.
const SHARE: usize = 8;
/// Events wait no longer for others to be compressed with.
const PATIENCE: Duration = Duration::from_millis(50);

/// A thread's number and name.
pub type Thread = (u32, [u8; 16]);

/// A ring of a program that logs.
pub struct Ring {
    part: Segment,
    /// The segment, and where the words begin in it.
    fd: RawFd,
    begin: usize,
    words: usize,
    /// Words before this one were copied, those behind the tail are on their way to the file.
    read: u64,
    /// Where the block ends that a collector before this one may have written.
    until: Option<u64>,
    /// When there was last nothing to copy, or a copy was made.
    since: Instant,
    /// Whether something was there when it was looked at.
    waits: bool,
    /// The place behind what was copied last.
    next: u64,
    /// Whose events follow those that are in the file.
    thread: Thread,
    /// The tail as this end has seen or moved it last.
    tail: Option<u64>,
    /// What a thread has noted that has moved the tail last.
    overwritten: Known,
    /// Batches that are still copied after the end of the program.
    left: Option<usize>,
}

impl Ring {
    /// That at `place` in the segment behind `fd`, whose rings have so many words.
    pub fn map(fd: RawFd, place: usize, words: usize) -> Option<Self> {
        let (offset, size) = (ring_at(place, words), ring_size(words));
        let part = Segment::part(fd, offset, size, Access::ReadWrite, Fill::Later).ok()?;
        let mut ring = Self {
            part,
            fd,
            begin: offset + size_of::<RingHead>(),
            words,
            read: 0,
            until: None,
            since: Instant::now(),
            waits: false,
            next: 0,
            thread: Thread::default(),
            tail: None,
            overwritten: Known::default(),
            left: None,
        };
        ring.take_over();
        Some(ring)
    }

    /// Goes on where another collector has ended.
    fn take_over(&mut self) {
        let head = self.head();
        let known = settled(head, head.indices.tail());
        let (tail, thread) = (known.tail, thread_of(&known));
        let ahead = head.writing_to.load(Acquire).wrapping_sub(tail);
        let until = (1..=self.words as u64).contains(&ahead).then(|| tail.wrapping_add(ahead));
        if ahead == 0 {
            // It was freed, and the other died before it could say what that told of.
            head.told.fetch_max(head.writing_told.load(Relaxed), Relaxed);
        }
        (self.thread, self.next, self.read, self.until) = (thread, tail, tail, until);
    }

    /// A block is about to be made whose first events are this thread's, unless it follows.
    pub fn begin(&mut self, thread: Option<Thread>) {
        self.thread = thread.unwrap_or(self.thread);
    }

    /// What a block of events of it says of them, where it is ring `place` of a process.
    pub fn header(&self, process: u32, place: usize, packed: &Packed) -> Header {
        let Packed { summary, codec, raw, .. } = packed;
        Header {
            codec: *codec,
            raw: *raw as u32,
            ring: place as u32,
            tid: self.thread.0,
            thread: self.thread.1,
            events: summary.events,
            is_carried: summary.is_carried || is_virtual(self.thread.0),
            first_ticks: summary.first_ticks,
            last_ticks: summary.last_ticks,
            told: self.told(),
            ..Header::of(Kind::Events, process)
        }
    }

    pub fn head(&self) -> &RingHead {
        // SAFETY: atomics only; the mapping lasts as long as `self`.
        unsafe { self.part.at(0) }.expect("it was mapped whole")
    }

    /// The program has ended. Another process may go on filling the ring: of that no more is taken
    /// than the ring holds. A damaged record can cut a batch short, and the next one is whole.
    pub fn finish(&mut self) {
        self.left.get_or_insert(2 * self.words.div_ceil(BATCH) + 1);
    }

    /// How full it is, from 0 to 1, with what was copied and is not yet in the file.
    pub fn fullness(&self) -> f64 {
        let indices = &self.head().indices;
        let used = indices.head().load(Acquire).wrapping_sub(indices.tail());
        used.min(self.words as u64) as f64 / self.words as f64
    }

    /// Whether there is a batch that was not copied yet. Of a large ring that is less than what
    /// its thread says something of.
    pub fn has_batch(&self) -> bool {
        let ready = self.head().indices.head().load(Acquire).wrapping_sub(self.read);
        (BATCH as u64..=self.words as u64).contains(&ready)
    }

    /// Words that were not copied yet.
    fn ready(&mut self) -> usize {
        let head = self.head();
        let mut tail = head.indices.tail();
        if let Some(known) = self.tail
            && is_before(tail, known)
            && head.indices.free(tail, known).is_ok()
        {
            tail = known;
        }
        let used = head.indices.head().load(Acquire).wrapping_sub(tail);
        if used > self.words as u64 {
            // A thread has overwritten between the two looks: then the tail is another by now.
            // Else no writer does so, and what is there is given up.
            if head.indices.free(tail, tail.wrapping_add(used)).is_ok() {
                self.read = tail.wrapping_add(used);
            }
            return 0;
        }
        // A thread that overwrites may be ahead of this end; no other way leads out of here.
        let copied = self.read.wrapping_sub(tail);
        if copied > used {
            self.read = tail;
            return used as usize;
        }
        (used - copied) as usize
    }

    /// Whether it is time to take what is there: with `all` always, else when it makes a block
    /// or has waited.
    pub fn is_time(&mut self, all: bool) -> bool {
        let ready = self.ready();
        self.waits = ready > 0 && self.left != Some(0);
        if !self.waits {
            self.since = Instant::now();
            return false;
        }
        let is_much = ready >= BATCH.min(self.words / SHARE);
        all || is_much || self.until.is_some() || self.since.elapsed() >= PATIENCE
    }

    /// When what is there has waited enough, if anything is.
    pub fn due(&self) -> Option<Instant> {
        self.waits.then(|| self.since + PATIENCE)
    }

    /// Copies the next words, up to a batch of whole records, to `out` in place of what it has; says
    /// the place of the first, and whose they are where they do not follow those before. They
    /// stay in the ring.
    pub fn copy(&mut self, out: &mut Vec<u64>) -> (u64, Option<Thread>) {
        (self.since, self.waits) = (Instant::now(), false);
        let ready = self.ready();
        let from = self.read;
        let left = self.until.take().map_or(usize::MAX, |until| until.wrapping_sub(from) as usize);
        let count = ready.min(BATCH).min(left);
        self.left = self.left.map(|left| left.saturating_sub(1));
        out.resize(count, 0);
        let first = from as usize & (self.words - 1);
        let (until_end, rest) = out.split_at_mut(count.min(self.words - first));
        self.read(first, until_end);
        self.read(0, rest);
        self.keep(out, count < ready)
    }

    /// Takes out of words that were copied what a thread has overwritten meanwhile, and where
    /// `more` follow, the record that is not whole.
    fn keep(&mut self, out: &mut Vec<u64>, more: bool) -> (u64, Option<Thread>) {
        let (from, head) = (self.read, self.head());
        // Behind the tail as it is after the copying no thread has written meanwhile.
        fence(Acquire);
        let tail = head.indices.tail();
        let follows = from == self.next && !is_before(from, tail);
        let (overtaken, thread) = if follows {
            (0, None)
        } else {
            let known = settled(head, tail);
            (known.tail.wrapping_sub(from), Some(thread_of(&known)))
        };
        out.drain(..(overtaken as usize).min(out.len()));
        if more {
            let whole = whole(out);
            out.truncate(if whole == 0 { out.len() } else { whole });
        }
        let from = from.wrapping_add(overtaken);
        self.read = from.wrapping_add(out.len() as u64);
        // A copy without words is dropped, so the next copy has to name the thread.
        if !out.is_empty() {
            self.next = self.read;
        }
        (from, thread)
    }

    /// Copies words from the word at `first` on.
    fn read(&self, first: usize, out: &mut [u64]) {
        let words = self.part.words(size_of::<RingHead>(), self.words);
        let words = &words.expect("it was mapped whole")[first..first + out.len()];
        sparse_copy::copy(words, self.fd, self.begin + 8 * first, out);
    }

    /// Events lost that the file tells of.
    pub fn told(&self) -> u64 {
        self.head().told.load(Relaxed)
    }

    /// A block is about to be written that ends before the word at `to`, and with which the
    /// file will tell of `told` losses.
    pub fn writing(&self, to: u64, told: u64) {
        let head = self.head();
        head.writing_told.store(told, Relaxed);
        head.writing_to.store(to, Release);
    }

    /// The words from `from` on, a copy of which is `words`, are in the file, which now tells of
    /// `told` losses.
    pub fn free(&mut self, from: u64, words: &[u64], mut told: u64, summary: &Summary) {
        self.begin(summary.thread);
        let to = from.wrapping_add(words.len() as u64);
        let (tid, name) = self.thread;
        let name =
            [&name[..8], &name[8..]].map(|half| half.try_into().map_or(0, u64::from_le_bytes));
        Oldest::note(&self.head().freed, &Known { tail: to, tid, name, ..Known::default() });
        let mut at = from;
        for _ in 0..MOVES {
            self.look_at_tail();
            let Err(now) = self.head().indices.free(at, to) else {
                self.tail = Some(to);
                break;
            };
            if is_before(now, at) {
                at = now;
                continue;
            }
            // A thread that overwrites has freed some of them, and counted as lost what is in
            // the file.
            let end = (now.wrapping_sub(from) as usize).min(words.len());
            let begin = (at.wrapping_sub(from) as usize).min(end);
            let events = Records::new(&words[begin..end]).flatten().filter(|one| one.is_event());
            told = told.saturating_add(events.count() as u64);
            if now.wrapping_sub(from) >= words.len() as u64 {
                break;
            }
            at = now;
        }
        self.head().told.store(told, Relaxed);
    }

    /// A thread that overwrites may be killed before it counts what it has noted. That holds if
    /// it, and not this end, has moved the tail there.
    fn look_at_tail(&mut self) {
        let head = self.head();
        let tail = head.indices.tail();
        if self.tail != Some(tail) {
            let known = settled(head, tail);
            self.tail = Some(known.tail);
            if known.lost > self.overwritten.lost {
                self.overwritten = known;
            }
        }
    }

    /// A record of the events lost after the last that was written, with its place.
    pub fn last_loss(&mut self) -> Option<(u64, [u64; 6])> {
        self.look_at_tail();
        let head = self.head();
        let tail = head.indices.tail();
        let mut lost = head.indices.lost();
        let (mut first, mut last) = (head.lost_first.load(Relaxed), head.lost_last.load(Relaxed));
        let noted = self.overwritten;
        if noted.lost > lost {
            (lost, first, last) = (noted.lost, noted.lost_first, noted.lost_last);
        }
        let record = (tail, loss_record(last, lost, first, last));
        (lost > head.told.load(Relaxed)).then_some(record)
    }

    /// Takes the mapping away.
    pub fn unmap(self) {
        // SAFETY: references into it last no longer than the ring.
        unsafe { self.part.unmap() };
    }
}

/// Whether one place is before another. No program moves a tail back; it would wait for ever for room.
fn is_before(one: u64, other: u64) -> bool {
    (one.wrapping_sub(other) as i64) < 0
}

/// How often a thread can move the tail meanwhile: one that overwrites moves it by a sixteenth of the
/// ring each time. Another may do so as often as it likes.
const MOVES: u32 = 32;

/// What is known of the tail, as last seen at `tail` or where it is by now.
fn settled(head: &RingHead, mut tail: u64) -> Known {
    for _ in 0..MOVES {
        let known = head.oldest(tail);
        fence(Acquire);
        let now = head.indices.tail();
        if now == tail {
            return known.unwrap_or(Known { tail, ..Known::default() });
        }
        tail = now;
    }
    Known { tail, ..Known::default() }
}

/// Whose the record is that stands there.
fn thread_of(known: &Known) -> Thread {
    let mut letters = [0; 16];
    letters.copy_from_slice(known.name.map(u64::to_le_bytes).as_flattened());
    (known.tid, letters)
}

#[cfg(test)]
#[path = "ring_test.rs"]
mod tests;
