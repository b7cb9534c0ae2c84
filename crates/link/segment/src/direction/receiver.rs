// SPDX-License-Identifier: Apache-2.0
//! What the receiver of a direction does, under its lock.

use super::*;

impl Direction {
    pub fn receiver_lock(&self) -> &Lock {
        &self.receiver.lock
    }

    /// From now on the receiver follows upgrades. It has read this many bytes from TCP.
    pub fn ready(&self, read: u64) {
        self.begin(read);
        self.be_ready();
    }

    /// The receiver has read this many bytes from TCP, and follows no upgrade yet.
    pub fn begin(&self, read: u64) {
        self.receiver.read.store(read, Relaxed);
    }

    pub fn be_ready(&self) {
        let _ = self.received.wish.compare_exchange(0, READY, Release, Relaxed);
    }

    pub fn is_ready(&self) -> bool {
        self.received.wish.load(Acquire) == READY
    }

    /// The receiver wants TCP for good; whether it is the first to say so.
    pub fn leave(&self) -> bool {
        self.received.wish.swap(LEAVES, AcqRel) != LEAVES
    }

    /// Whether the sender uses TCP, and all that it wrote to the ring has been read.
    pub fn is_back(&self) -> bool {
        let changes = self.sent.changes.load(Acquire);
        let at = self.place_of(changes.wrapping_sub(1));
        changes.is_multiple_of(2) && (changes == 0 || at == self.received.tail.load(Acquire))
    }

    /// Where the next bytes are. Follows the changes whose place is reached.
    pub fn source(&self, capacity: u64) -> Result<Source, Corrupt> {
        loop {
            let followed = self.received.followed.load(Relaxed);
            let tail = self.received.tail.load(Relaxed);
            match self.source_at(followed, tail, capacity) {
                Ok(Some(source)) => return Ok(source),
                // Behind the change. A signal handler of the same thread may have followed it.
                Ok(None) => {
                    let next = followed.wrapping_add(1);
                    let place = &self.received.followed;
                    let _ = place.compare_exchange(followed, next, Release, Relaxed);
                }
                // Such a handler has read or followed since `followed` and `tail` were read.
                Err(Corrupt)
                    if followed != self.received.followed.load(Relaxed)
                        || tail != self.received.tail.load(Relaxed) => {}
                Err(Corrupt) => return Err(Corrupt),
            }
        }
    }

    /// As `source`, at this point of the stream; `None` if the source changes there.
    fn source_at(
        &self,
        followed: u64,
        tail: u64,
        capacity: u64,
    ) -> Result<Option<Source>, Corrupt> {
        let ahead = self.sent.changes.load(Acquire).wrapping_sub(followed);
        if ahead > 2 {
            return Err(Corrupt);
        }
        let place = self.place_of(followed);
        let change = (ahead > 0).then_some(place);
        if followed.is_multiple_of(2) {
            let left = change.map(|at| at.wrapping_sub(self.receiver.read.load(Relaxed)));
            return match left {
                None => Ok(Some(Source::Tcp(u64::MAX))),
                Some(0) => Ok(None),
                Some(left) if left <= u64::MAX / 2 => Ok(Some(Source::Tcp(left))),
                Some(_) => Err(Corrupt),
            };
        }
        let end = change.unwrap_or_else(|| self.sent.head.load(Acquire));
        match end.wrapping_sub(tail) {
            0 if change.is_none() => Ok(Some(Source::Empty)),
            0 => Ok(None),
            length if length <= capacity => Ok(Some(Source::Ring { from: tail, length })),
            _ => Err(Corrupt),
        }
    }

    /// Bytes of the stream that were read, through TCP and the ring: only to be compared with an
    /// earlier number.
    pub fn position(&self) -> u64 {
        let tail = self.received.tail.load(Relaxed);
        tail.wrapping_add(self.receiver.read.load(Relaxed))
    }

    /// Whether TCP's are all bytes from here on: no change follows.
    pub fn is_tcp_for_good(&self) -> bool {
        let followed = self.followed();
        self.received.wish.load(Relaxed) == LEAVES
            && followed.is_multiple_of(2)
            && self.changes_since(followed) == 0
    }

    /// Whether the sender has taken bytes back that TCP has not accepted yet.
    pub fn has_backlog(&self) -> bool {
        self.sent.backlog.load(Acquire) > 0
    }

    /// Whether the kernel resets the connection if the sender is killed with a backlog.
    pub fn is_guarded(&self) -> bool {
        self.sent.is_guarded.load(Acquire) != 0
    }

    /// Where the stream of a sender that was killed with a backlog continues in the ring, and for how
    /// many bytes, behind TCP's last byte. The receiver has not read the last `waiting` bytes of TCP's.
    pub fn undelivered(&self, waiting: u64, capacity: u64) -> Result<Option<(u64, u64)>, Corrupt> {
        let length = self.sent.backlog.load(Acquire);
        // In the ring, the receiver has read all bytes: the sender was killed before it took them.
        if length == 0 || !self.followed().is_multiple_of(2) {
            return Ok(None);
        }
        if length > capacity {
            return Err(Corrupt);
        }
        let read = self.receiver.read.load(Relaxed);
        Ok(self.rest_of_backlog(length, read.wrapping_add(waiting)))
    }

    /// Whether the sender has sent or changed something that was not read or followed. Asks for no
    /// lock: another thread may read it first.
    pub fn has_updates(&self) -> bool {
        self.sent.head.load(Acquire) != self.received.tail.load(Relaxed)
            || self.changes_since(self.followed()) > 0
    }

    /// Changes that the receiver has followed: an even number while it reads from TCP.
    pub fn followed(&self) -> u64 {
        self.received.followed.load(Relaxed)
    }

    /// Changes behind this number of them.
    pub fn changes_since(&self, followed: u64) -> u64 {
        self.sent.changes.load(Acquire).wrapping_sub(followed)
    }

    /// Bytes written to the ring, as the sender says: only to be compared with an earlier one.
    pub fn head(&self) -> u64 {
        self.sent.head.load(Acquire)
    }

    /// A number that changes with each byte and each change, for edges: `head` alone returns to an
    /// earlier value when bytes are taken back.
    pub fn mark(&self) -> u64 {
        self.head() ^ self.sent.changes.load(Acquire).rotate_right(16)
    }

    /// Bytes that wait in the ring, as both ends say.
    pub fn unread(&self) -> u64 {
        self.sent.head.load(Relaxed).wrapping_sub(self.received.tail.load(Relaxed))
    }

    /// Threads that sleep until the doorbell is rung: before it is armed for them, and after.
    pub fn sleepers(&self) -> &AtomicU32 {
        &self.receiver.sleepers
    }

    /// Before the receiver reads from TCP. `source` is to be asked, or asked again, after it.
    pub fn begin_read(&self) {
        self.receiver.reading.store(1, Relaxed);
        fence(SeqCst);
    }

    /// This number of bytes was read from TCP.
    pub fn end_read(&self, bytes: u64) {
        self.receiver.read.fetch_add(bytes, Relaxed);
        self.receiver.reading.store(0, Release);
    }

    /// This number of bytes of the ring was read from `from` on. False if a signal handler of the
    /// same thread has read them: read the next bytes instead.
    pub fn consume(&self, from: u64, length: u64) -> bool {
        let to = from.wrapping_add(length);
        self.received.tail.compare_exchange(from, to, Release, Relaxed).is_ok()
    }
}
