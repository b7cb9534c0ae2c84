// SPDX-License-Identifier: Apache-2.0
//! What the sender of a direction does. What changes something asks for its lock.

use super::*;

impl Direction {
    pub fn sender_lock(&self) -> &Lock {
        &self.sender.lock
    }

    pub fn mode(&self) -> Mode {
        if self.sent.changes.load(Relaxed).is_multiple_of(2) { Mode::Tcp } else { Mode::Ring }
    }

    /// A thread begins a call that writes to TCP; false while the ring is used.
    pub fn begin_write(&self) -> bool {
        let more = |writers: u32| (writers < RING - 1).then(|| writers + 1);
        self.sender.writers.fetch_update(AcqRel, Relaxed, more).is_ok()
    }

    /// The call wrote this many bytes.
    pub fn end_write(&self, bytes: u64) {
        self.sender.written.fetch_add(bytes, Relaxed);
        let fewer = |writers: u32| writers.checked_sub(1).filter(|_| writers < RING);
        let _ = self.sender.writers.fetch_update(Release, Relaxed, fewer);
    }

    /// Whether the receiver has followed all changes, and follows another one.
    pub fn can_upgrade(&self) -> bool {
        self.received.wish.load(Acquire) == READY
            && self.received.followed.load(Acquire) == self.sent.changes.load(Relaxed)
    }

    /// From here on bytes go through the ring. False while a thread writes to TCP, or the receiver
    /// is not ready. `written` is the number of TCP's bytes, for the first time; else it is known.
    pub fn upgrade(&self, written: impl FnOnce() -> Option<u64>) -> bool {
        if self.mode() == Mode::Ring
            || !self.can_upgrade()
            || self.sender.writers.compare_exchange(0, RING, AcqRel, Relaxed).is_err()
        {
            return false;
        }
        let changes = self.sent.changes.load(Relaxed);
        let known = Some(self.sender.written.load(Relaxed));
        let Some(place) = (if changes == 0 { written() } else { known }) else {
            self.sender.writers.store(0, Release);
            return false;
        };
        self.sender.written.store(place, Relaxed);
        // Another process may have been killed in the middle of `take_back`, or behind it.
        self.forget_backlog();
        if changes > 0 {
            self.sent.head.store(self.place_of(changes - 1), Relaxed);
        }
        self.publish_change(changes, place);
        true
    }

    /// Whether the receiver knows of the last upgrade, or will before it reads more from TCP: a
    /// downgrade that it does not expect could give it bytes of TCP's too early.
    pub fn can_downgrade(&self) -> bool {
        fence(SeqCst);
        self.receiver.reading.load(Acquire) == 0
            || self.received.followed.load(Acquire) == self.sent.changes.load(Relaxed)
    }

    /// From here on bytes go to TCP. After `can_downgrade`.
    pub fn downgrade(&self) {
        if self.mode() == Mode::Ring {
            let head = self.sent.head.load(Relaxed);
            self.publish_change(self.sent.changes.load(Relaxed), head);
            self.sender.writers.store(0, Release);
        }
    }

    /// Takes back what the receiver has not read: it is the backlog, which the sender then writes to
    /// TCP. From the last byte that was read on the stream is TCP's. If the sender is killed, the
    /// receiver finds the bytes either in the ring, or by `undelivered`. Asks for both locks, and
    /// `can_downgrade`.
    pub fn take_back(&self, capacity: u64) -> Result<(), Corrupt> {
        let head = self.sent.head.load(Relaxed);
        let tail = self.received.tail.load(Acquire);
        let length = head.wrapping_sub(tail);
        if length > capacity {
            return Err(Corrupt);
        }
        if self.mode() == Mode::Ring {
            self.sent.backlog_at.store(tail, Relaxed);
            self.sent.backlog_behind.store(self.sender.written.load(Relaxed), Relaxed);
            self.sent.backlog.store(length, Relaxed);
            self.publish_change(self.sent.changes.load(Relaxed), tail);
            self.sent.head.store(tail, Release);
            self.sender.writers.store(0, Release);
        }
        Ok(())
    }

    /// What was taken back and is not TCP's yet: its place in the ring, and its length.
    pub fn backlog(&self) -> Option<(u64, u64)> {
        let length = self.sent.backlog.load(Relaxed);
        self.rest_of_backlog(length, self.sender.written.load(Relaxed))
    }

    /// TCP has accepted the whole backlog; or it is lost, with the connection.
    pub fn forget_backlog(&self) {
        self.sent.backlog.store(0, Release);
        self.sent.is_guarded.store(0, Relaxed);
    }

    /// From here on the kernel resets the connection if the sender is killed with a backlog.
    pub fn set_guarded(&self) {
        self.sent.is_guarded.store(1, Release);
    }

    /// Bytes that the ring has room for, and the place of the first.
    pub fn room(&self, capacity: u64) -> Result<(u64, u64), Corrupt> {
        let head = self.sent.head.load(Relaxed);
        // Acquire: the receiver's reads are over before their bytes are written again.
        let used = head.wrapping_sub(self.received.tail.load(Acquire));
        Ok((head, capacity.checked_sub(used).ok_or(Corrupt)?))
    }

    /// The receiver can read this number of further bytes, which were written from `from` on.
    /// False if a signal handler of the same thread has changed the ring: write them again.
    pub fn publish(&self, from: u64, length: u64) -> bool {
        let to = from.wrapping_add(length);
        let is_published = self.sent.head.compare_exchange(from, to, Release, Relaxed).is_ok();
        #[cfg(not(loom))]
        if is_published {
            // Under the lock: nobody else counts.
            let messages = self.sender.messages.load(Relaxed).wrapping_add(1);
            self.sender.messages.store(messages, Relaxed);
        }
        is_published
    }

    /// Takes back what `publish` has published while the stream is TCP's.
    pub fn unpublish(&self, from: u64, length: u64) {
        let to = from.wrapping_add(length);
        let _ = self.sent.head.compare_exchange(to, from, Release, Relaxed);
    }

    /// The receiver's doorbell.
    pub fn doorbell(&self) -> &Doorbell {
        &self.received.doorbell
    }

    /// Whether the receiver wants TCP for good.
    pub fn is_left(&self) -> bool {
        self.received.wish.load(Acquire) == LEAVES
    }

    /// Bytes of the ring that the receiver has read, as it says.
    pub fn tail(&self) -> u64 {
        self.received.tail.load(Relaxed)
    }

    /// The futex on which the sender sleeps until the ring has room: it is 1 then.
    pub fn full_futex(&self) -> &AtomicU32 {
        &self.sent.is_full
    }

    /// On which CPU the sender waits, before it does.
    pub fn set_cpu(&self, cpu: u32) {
        if self.sent.cpu.load(Relaxed) != cpu + 1 {
            self.sent.cpu.store(cpu + 1, Relaxed);
        }
    }

    /// Whether the sender last waited on this CPU: it cannot run while the caller does.
    pub fn was_last_on(&self, cpu: u32) -> bool {
        self.sent.cpu.load(Relaxed) == cpu + 1
    }

    /// What is left of a backlog of this length, if the stream has this number of TCP's bytes.
    pub(super) fn rest_of_backlog(&self, length: u64, tcp: u64) -> Option<(u64, u64)> {
        let accepted = tcp.wrapping_sub(self.sent.backlog_behind.load(Relaxed));
        let at = self.sent.backlog_at.load(Relaxed);
        (accepted < length).then(|| (at.wrapping_add(accepted), length - accepted))
    }

    fn publish_change(&self, changes: u64, place: u64) {
        self.sent.places[(changes % 2) as usize].store(place, Relaxed);
        self.sent.changes.store(changes.wrapping_add(1), Release);
    }
}
