// SPDX-License-Identifier: Apache-2.0
use std::os::fd::RawFd;
use std::sync::atomic::Ordering::{Acquire, Relaxed};
use std::sync::atomic::fence;
use std::time::{Duration, Instant};
use tare_log_segment::layout::{RingHead, ring_at, ring_size};
use tare_log_segment::record::{Records, loss_record};
use tare_shm::{Access, Fill, Segment, Word};

/// Words that become one block: 64 Ki events.
const BATCH: usize = 1 << 17;
/// Events wait no longer for others to be compressed with.
const PATIENCE: Duration = Duration::from_millis(100);

/// A ring of a program that logs.
pub struct Ring {
    part: Segment,
    words: usize,
    /// When something was first seen in it.
    since: Option<Instant>,
    /// The thread whose events are the oldest.
    pub tid: u32,
    pub thread: [u8; 16],
}

impl Ring {
    /// That at `place` in the segment behind `fd`, whose rings have so many words.
    pub fn map(fd: RawFd, place: usize, words: usize) -> Option<Self> {
        let (offset, size) = (ring_at(place, words), ring_size(words));
        let part = Segment::part(fd, offset, size, Access::ReadWrite, Fill::Later).ok()?;
        let mut ring = Self { part, words, since: None, tid: 0, thread: [0; 16] };
        let (head, _) = ring.parts();
        let (tid, name) = (head.oldest_tid.load(Relaxed), head.oldest_name.each_ref());
        let name = name.map(|half| half.load(Relaxed).to_le_bytes());
        ring.tid = tid;
        ring.thread.copy_from_slice(name.as_flattened());
        Some(ring)
    }

    fn parts(&self) -> (&RingHead, &[Word]) {
        // SAFETY: atomics only; the mapping lasts as long as `self`.
        let head: Option<&RingHead> = unsafe { self.part.at(0) };
        let words = self.part.words(size_of::<RingHead>(), self.words);
        (head.expect("it was mapped whole"), words.expect("it was mapped whole"))
    }

    /// How full it is, from 0 to 1, and whether it is time to take what is there: with `all`
    /// always, else when it makes a block or has waited.
    pub fn look(&mut self, all: bool) -> (f64, bool) {
        let (head, _) = self.parts();
        let tail = head.indices.tail();
        let ready = head.indices.head().load(Acquire).wrapping_sub(tail);
        if ready > self.words as u64 {
            // A thread has overwritten between the two looks: then the tail is another by now.
            // Else no writer does so, and what is there is given up.
            let _ = head.indices.free(tail, tail.wrapping_add(ready));
        }
        if ready == 0 || ready > self.words as u64 {
            self.since = None;
            return (0.0, false);
        }
        let since = *self.since.get_or_insert_with(Instant::now);
        let is_much = ready as usize >= BATCH.min(self.words / 4);
        (ready as f64 / self.words as f64, all || is_much || since.elapsed() >= PATIENCE)
    }

    /// Copies the oldest words, up to a batch, to `out`, which is cleared; says the place of the
    /// first. They stay in the ring.
    pub fn copy(&mut self, out: &mut Vec<u64>) -> u64 {
        self.since = None;
        let (head, words) = self.parts();
        let tail = head.indices.tail();
        let ready = head.indices.head().load(Acquire).wrapping_sub(tail) as usize;
        let count = ready.min(BATCH).min(words.len());
        let first = tail as usize & (words.len() - 1);
        let until_end = count.min(words.len() - first);
        out.clear();
        for words in [&words[first..first + until_end], &words[..count - until_end]] {
            out.extend(words.iter().map(|word| word.load(Relaxed)));
        }
        // Behind the tail as it is after the copying no thread has written meanwhile.
        fence(Acquire);
        let overtaken = head.indices.tail().wrapping_sub(tail);
        out.drain(..(overtaken as usize).min(out.len()));
        tail.wrapping_add(overtaken)
    }

    /// Events lost that the file tells of.
    pub fn told(&self) -> u64 {
        self.parts().0.told.load(Relaxed)
    }

    /// The words from `from` on, a copy of which is `words`, are in the file, which now tells of
    /// `told` losses.
    pub fn free(
        &mut self,
        from: u64,
        words: &[u64],
        mut told: u64,
        thread: Option<(u32, [u8; 16])>,
    ) {
        (self.tid, self.thread) = thread.unwrap_or((self.tid, self.thread));
        let (head, _) = self.parts();
        if let Some((tid, name)) = thread {
            head.oldest_tid.store(tid, Relaxed);
            for (place, half) in head.oldest_name.iter().zip(name.chunks_exact(8)) {
                place.store(u64::from_le_bytes(half.try_into().unwrap_or_default()), Relaxed);
            }
        }
        let to = from.wrapping_add(words.len() as u64);
        let mut at = from;
        while let Err(now) = head.indices.free(at, to) {
            // A thread that overwrites has freed some of them, and counted as lost what is in
            // the file.
            let end = (now.wrapping_sub(from) as usize).min(words.len());
            let begin = (at.wrapping_sub(from) as usize).min(end);
            let events = Records::new(&words[begin..end]).flatten().filter(|one| one.is_event());
            told += events.count() as u64;
            if now.wrapping_sub(from) >= words.len() as u64 {
                break;
            }
            at = now;
        }
        head.told.store(told, Relaxed);
    }

    /// A record of the events lost after the last that was written, with its place.
    pub fn last_loss(&self) -> Option<(u64, [u64; 6])> {
        let (head, _) = self.parts();
        let lost = head.indices.lost();
        let (first, last) = (head.lost_first.load(Relaxed), head.lost_last.load(Relaxed));
        let record = (head.indices.tail(), loss_record(last, lost, first, last));
        (lost > head.told.load(Relaxed)).then_some(record)
    }

    /// Takes the mapping away.
    pub fn unmap(self) {
        // SAFETY: references into it last no longer than the ring.
        unsafe { self.part.unmap() };
    }
}
