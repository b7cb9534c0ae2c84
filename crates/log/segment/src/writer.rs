// SPDX-License-Identifier: Apache-2.0
use crate::layout::{MODES, RingHead, mode};
use crate::oldest::{Known, Oldest};
use crate::record::{self, ChannelId, MARK_WORDS, SHORT_WORDS, short_tag};
use core::cell::Cell;
use core::ptr;
use core::sync::atomic::Ordering::{AcqRel, Relaxed, Release};
use core::sync::atomic::{AtomicU8, compiler_fence, fence};
use tare_shm::Word;

/// What one thread writes its events with. It stands in memory that the kernel wipes in the
/// child of a fork: all zero is a writer without a ring, which leaves every event to the
/// library. `include/tare_log.h` has the same fields.
#[repr(C, align(128))]
#[derive(Debug)]
pub struct Writer {
    /// How far `head` may go before the library looks at the ring again. 0 while an event is
    /// being written: a signal handler that comes in between leaves its events to the library.
    limit: Cell<u64>,
    /// Words written since the ring was made.
    head: Cell<u64>,
    words: Cell<*const Word>,
    mask: Cell<u64>,
    published: Cell<*const Word>,
    modes: Cell<*const AtomicU8>,
    ring: Cell<*const RingHead>,
    /// Whether events were lost that no record tells of yet.
    has_lost: Cell<u64>,
}

/// The limit of a writer whose ring has to be looked at first.
const UNKNOWN: u64 = 1;

/// The values that `head` can have: records have an even number of words, which the fast paths in
/// C and Java rely on, and no program writes so many words that a sum with one overflows.
const HEADS: u64 = (u64::MAX >> 2) & !1;

impl Writer {
    pub const fn new() -> Self {
        Self {
            limit: Cell::new(0),
            head: Cell::new(0),
            words: Cell::new(ptr::null()),
            mask: Cell::new(0),
            published: Cell::new(ptr::null()),
            modes: Cell::new(ptr::null()),
            ring: Cell::new(ptr::null()),
            has_lost: Cell::new(0),
        }
    }

    /// Leaves to the library what signal handlers of a new thread log, until it has begun.
    pub fn suspend(&self) {
        self.limit.set(0);
        compiler_fence(AcqRel);
    }

    /// Begins to write where the ring's last thread has ended; it is busy until a first record
    /// was pushed. `None` unless the number of words is a power of two.
    ///
    /// # Safety
    /// All three stay mapped as long as this is used, which one thread does; `modes` has a
    /// place for each number that a channel can have.
    pub unsafe fn begin(
        &self,
        ring: *const RingHead,
        words: *const [Word],
        modes: *const AtomicU8,
    ) -> Option<()> {
        if !words.len().is_power_of_two() {
            return None;
        }
        // SAFETY: the ring is mapped, as the caller promises.
        let published = unsafe { (*ring).indices.head() };
        self.head.set(published.load(Relaxed) & HEADS);
        self.words.set(words.cast());
        self.mask.set(words.len() as u64 - 1);
        self.published.set(published);
        self.modes.set(modes);
        self.ring.set(ring);
        // What the last thread has lost stands before what this one writes.
        // SAFETY: the ring is mapped, as the caller promises.
        let has_lost = unsafe { (*ring).indices.lost() > (*ring).told.load(Relaxed) };
        self.has_lost.set(has_lost.into());
        Some(())
    }

    /// Takes the modes of channels from elsewhere.
    pub fn use_modes(&self, modes: &'static [AtomicU8; MODES]) {
        self.modes.set(modes.as_ptr());
    }

    /// The ring that it writes to; `None` before the first event, and in the child of a fork.
    pub fn ring(&self) -> Option<&RingHead> {
        // SAFETY: null, or what `begin` was given.
        unsafe { self.ring.get().as_ref() }
    }

    /// Whether a signal handler asks, that has interrupted the writing of an event.
    pub fn is_busy(&self) -> bool {
        self.limit.get() == 0
    }

    /// Writes the event, if the fast path can: `false` leaves it to the caller.
    #[inline(always)]
    pub fn log(&self, channel: ChannelId, payload: i64, ticks: impl FnOnce() -> u64) -> bool {
        let limit = self.limit.get();
        if limit == 0 {
            return false;
        }
        // SAFETY: with a limit there is a ring, and what `begin` was given with it.
        let mode = unsafe { (*self.modes.get().add(channel as usize)).load(Relaxed) };
        if mode != mode::RING {
            return mode == mode::NULL;
        }
        let Some(tag) = short_tag(channel, payload) else { return false };
        // A signal handler that came before this has written its events, and moved the head.
        self.limit.set(0);
        compiler_fence(AcqRel);
        let has_room = self.head.get() + SHORT_WORDS as u64 <= limit;
        if has_room {
            self.write([ticks(), tag].into_iter());
        }
        compiler_fence(AcqRel);
        self.limit.set(limit);
        has_room
    }

    /// Appends a record, for which there must be room.
    #[inline(always)]
    fn write(&self, record: impl Iterator<Item = u64>) {
        let mut head = self.head.get();
        for word in record {
            let place = (head & self.mask.get()) as usize;
            // SAFETY: masked to the ring, which is mapped.
            unsafe { (*self.words.get().add(place)).store(word, Relaxed) };
            head += 1;
        }
        // SAFETY: in the head of the ring, which is mapped with its words.
        unsafe { (*self.published.get()).store(head, Release) };
        self.head.set(head);
    }

    /// States again how far it has written.
    fn publish(&self) {
        if let Some(ring) = self.ring() {
            ring.indices.head().store(self.head.get(), Release);
        }
    }

    /// Appends a record, after one that tells of the events lost before it, if there is room
    /// for both. For the thread alone, with a ring, and not while it is busy.
    pub fn push(&self, record: &[u64]) -> bool {
        self.push_all(&[record], &[])
    }

    /// The same with several records, all of them or none. `bytes` are the payload of the last.
    pub fn push_all(&self, records: &[&[u64]], bytes: &[u8]) -> bool {
        self.within(|| {
            let has_lost = self.has_lost.get() != 0;
            let length: usize = records.iter().map(|record| record.len()).sum();
            let length = length + record::wide_words(bytes.len()) - record::SHORT_WORDS;
            if !self.has_room(length + if has_lost { MARK_WORDS } else { 0 }) {
                // If another head was written there, the collector has moved the tail to it, and
                // would never make room.
                self.publish();
                return false;
            }
            let ticks = records.first().and_then(|first| first.first());
            if has_lost && let (Some(ring), Some(ticks)) = (self.ring(), ticks) {
                self.has_lost.set(0);
                let first_lost = ring.lost_first.load(Relaxed);
                let last = ring.lost_last.load(Relaxed);
                let loss = record::loss_record(*ticks, ring.indices.lost(), first_lost, last);
                self.write(loss.into_iter());
            }
            if let Some((last, before)) = records.split_last() {
                before.iter().for_each(|record| self.write(record.iter().copied()));
                self.write(last.iter().copied().chain(record::payload_words(bytes)));
            }
            true
        })
    }

    /// After the writing of an event was broken off for good, as the end of a Java stack can:
    /// what of it was not published is no event. For a caller that is no signal handler.
    pub fn resume(&self) {
        if let Some(ring) = self.ring().filter(|_| self.is_busy()) {
            self.head.set(ring.indices.head().load(Relaxed) & HEADS);
            self.limit.set(self.next_limit());
        }
    }

    /// Counts an event at `ticks` that is lost.
    pub fn lose(&self, ticks: u64) {
        let Some(ring) = self.ring() else { return };
        self.within(|| {
            if self.has_lost.replace(1) == 0 {
                ring.lost_first.store(ticks, Relaxed);
            }
            ring.lost_last.store(ticks, Relaxed);
            ring.indices.lose();
        });
    }

    /// Does what no signal handler may come in between: its events go elsewhere meanwhile.
    pub fn within<T>(&self, write: impl FnOnce() -> T) -> T {
        self.limit.set(0);
        compiler_fence(AcqRel);
        let done = write();
        compiler_fence(AcqRel);
        self.limit.set(self.next_limit());
        done
    }

    fn capacity(&self) -> u64 {
        self.mask.get() + 1
    }

    /// Words that the collector has not freed; more than there are where it wrote nonsense.
    pub fn used(&self) -> u64 {
        self.ring().map_or(0, |ring| self.head.get().wrapping_sub(ring.indices.tail()))
    }

    /// Whether an event of the channel may take more than a few stores: the longest record might
    /// find no room, or the library does something else with it.
    pub fn may_wait(&self, channel: ChannelId) -> bool {
        let longest = MARK_WORDS + record::wide_words(record::LONGEST);
        // SAFETY: with a ring there is what `begin` was given with it.
        let mode = || unsafe { (*self.modes.get().add(channel as usize)).load(Relaxed) };
        self.ring().is_none() || mode() == mode::OUT_OF_LINE || !self.has_room(longest)
    }

    /// Whether the collector should be woken: from the first eighth of the ring on.
    pub fn is_filling(&self) -> bool {
        self.used() >= self.capacity() / 8
    }

    fn has_room(&self, words: usize) -> bool {
        self.capacity().checked_sub(self.used()).is_some_and(|free| free >= words as u64)
    }

    /// The fast path comes back at least eight times a round, to see whether the collector
    /// should be woken; and with the next event where a record of a loss is to be written.
    fn next_limit(&self) -> u64 {
        let free = self.capacity().saturating_sub(self.used());
        if self.has_lost.get() != 0 || free < SHORT_WORDS as u64 {
            return UNKNOWN;
        }
        self.head.get() + free.min(self.capacity() / 8)
    }

    /// Loses a sixteenth of the ring, the oldest records, in the collector's place, unless it
    /// was faster and has taken all; `false` where there is no room then either.
    pub fn overwrite(&self) -> bool {
        self.ring().is_some_and(|ring| self.within(|| self.lose_oldest(ring)))
    }

    fn lose_oldest(&self, ring: &RingHead) -> bool {
        let from = ring.indices.tail();
        let (mut at, mut lost, mut times, mut thread) = (from, 0, None, None);
        let head = self.head.get();
        while at.wrapping_sub(from) < self.capacity() / 16
            && (1..=self.capacity()).contains(&head.wrapping_sub(at))
            && let Some(words) = record::words(self.word(at.wrapping_add(1)))
        {
            let ticks = self.word(at);
            if record::is_event(self.word(at.wrapping_add(1))) {
                lost += 1;
                times = Some((times.map_or(ticks, |(first, _)| first), ticks));
            } else if record::is_thread(self.word(at.wrapping_add(1))) {
                thread = Some([2, 4, 5].map(|index| self.word(at.wrapping_add(index))));
            }
            at = at.wrapping_add(words as u64);
        }
        if at == from {
            return head == from;
        }
        let before = ring.oldest(from).unwrap_or_default();
        let [tid, name @ ..] =
            thread.unwrap_or([before.tid.into(), before.name[0], before.name[1]]);
        let untold = [&ring.lost_first, &ring.lost_last].map(|time| time.load(Relaxed));
        let [lost_first, lost_last] = match times {
            Some((_, last)) if self.has_lost.get() != 0 => [untold[0], last],
            Some((first, last)) => [first, last],
            None => untold,
        };
        let lost = ring.indices.lost().wrapping_add(lost);
        let known = Known { tail: at, lost, lost_first, lost_last, tid: tid as u32, name };
        Oldest::note(&ring.overwritten, &known);
        // Where the collector was faster, there is room as well.
        if ring.indices.free(from, at).is_err() {
            Oldest::forget(&ring.overwritten, at);
            return true;
        }
        // Who reads what is written there now sees where the tail is.
        fence(Release);
        if times.is_some() {
            self.has_lost.set(1);
            ring.lost_first.store(lost_first, Relaxed);
            ring.lost_last.store(lost_last, Relaxed);
            ring.indices.lose_until(lost);
        }
        true
    }

    fn word(&self, index: u64) -> u64 {
        // SAFETY: masked to the ring, which is mapped.
        unsafe { (*self.words.get().add((index & self.mask.get()) as usize)).load(Relaxed) }
    }
}

impl Default for Writer {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests;
