// SPDX-License-Identifier: Apache-2.0
use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release, SeqCst};
#[cfg(not(loom))]
use core::sync::atomic::{AtomicU32, AtomicU64, fence};
#[cfg(loom)]
use loom::sync::atomic::{AtomicU32, AtomicU64, fence};

use crate::{Bell, Lock};

/// Bytes of a ring, as powers of two: what it begins with, and grows to.
pub const SMALLEST_RING: u32 = if cfg!(loom) { 1 } else { 16 };
pub const LARGEST_RING: u32 = 22;

/// Something that the other process shares has a value that it never writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Corrupt;

/// How the sender sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    Tcp,
    Ring,
}

/// Where the next bytes of a stream are for its receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// At most this many of TCP's belong before the next change.
    Tcp(u64),
    /// This many in the ring, from this place on.
    Ring { from: u64, length: u64 },
    /// In the ring, which is empty.
    Empty,
}

/// One direction of a link: who sends and who receives, the ring's counters and the changes.
/// All zero is a direction that has always been TCP's.
///
/// The sender alone decides whether bytes go through the ring. Each change is published as a
/// place: an upgrade as a number of TCP's bytes, a downgrade as a number of the ring's. The
/// receiver follows when it has read all bytes before that place. Upgrades have even numbers,
/// downgrades odd ones, and at most two are not followed yet.
///
/// What an end uses for itself is not in the lines of the cache that the other end reads: a message
/// moves one line from the sender to the receiver, and one back.
#[repr(C)]
#[derive(Debug, Default)]
pub struct Direction {
    sender: Sender,
    sent: Sent,
    receiver: Receiver,
    received: Received,
}

/// The sender's own.
#[repr(C, align(128))]
#[derive(Debug, Default)]
struct Sender {
    /// Calls that wrote to the ring.
    #[cfg(not(loom))]
    messages: AtomicU64,
    /// Short waits of this end that saved a sleep.
    #[cfg(not(loom))]
    spins: AtomicU64,
    /// Bytes that were written to TCP, while `upgrades` are possible.
    written: AtomicU64,
    /// Threads that are in a call which writes to TCP; `RING` while none may begin one.
    writers: AtomicU32,
    lock: Lock,
    /// Bytes that were taken back and that TCP has not accepted yet, from a place of the ring on.
    backlog_at: AtomicU64,
    backlog: AtomicU64,
}

/// What the sender tells the receiver.
#[repr(C, align(128))]
#[derive(Debug, Default)]
struct Sent {
    /// Bytes written to the ring since the beginning.
    head: AtomicU64,
    /// Changes published, and the places of the last two.
    changes: AtomicU64,
    places: [AtomicU64; 2],
    /// 1 + the number of the CPU on which the sender last waited.
    cpu: AtomicU32,
    /// Not 0 while the sender sleeps (a futex) until the ring has room.
    is_full: AtomicU32,
}

/// The receiver's own.
#[repr(C, align(128))]
#[derive(Debug, Default)]
struct Receiver {
    /// Bytes read from TCP since the beginning of the connection.
    read: AtomicU64,
    /// Not 0 while the receiver reads from TCP without a limit.
    reading: AtomicU32,
    /// Threads that sleep until the bell is rung.
    sleepers: AtomicU32,
    lock: Lock,
}

/// What the receiver tells the sender.
#[repr(C, align(128))]
#[derive(Debug, Default)]
struct Received {
    /// Bytes read from the ring since the beginning.
    tail: AtomicU64,
    /// Changes that the receiver has followed.
    followed: AtomicU64,
    /// Bytes of the ring beyond `SMALLEST_RING`, as powers of two.
    growth: AtomicU32,
    /// 1 when the receiver follows upgrades, 2 when it wants TCP for good.
    wish: AtomicU32,
    /// Not 0: the receiver limits its address space, so the ring does not grow.
    is_small: AtomicU32,
    bell: Bell,
}

/// What a direction has counted.
#[cfg(not(loom))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Totals {
    pub ring_bytes: u64,
    pub tcp_bytes: u64,
    /// Calls that wrote to the ring.
    pub messages: u64,
    /// Short waits of the sender that saved a sleep.
    pub spins: u64,
    /// Times that the receiver was woken by its eventfd.
    pub wakes: u64,
    pub upgrades: u64,
    pub downgrades: u64,
    /// Whether the receiver wants TCP for good.
    pub is_left: bool,
}

#[cfg(not(loom))]
impl Direction {
    /// A short wait of the sender's saved a sleep.
    pub fn spun(&self) {
        self.sender.spins.fetch_add(1, Relaxed);
    }

    pub fn totals(&self) -> Totals {
        let changes = self.sent.changes.load(Relaxed);
        Totals {
            ring_bytes: self.sent.head.load(Relaxed),
            tcp_bytes: self.sender.written.load(Relaxed),
            messages: self.sender.messages.load(Relaxed),
            spins: self.sender.spins.load(Relaxed),
            wakes: self.received.bell.rings(),
            upgrades: changes.div_ceil(2),
            downgrades: changes / 2,
            is_left: self.is_left(),
        }
    }
}

const RING: u32 = 1 << 31;
const READY: u32 = 1;
const LEAVES: u32 = 2;

/// For the sender. What changes something asks for its lock.
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
    /// TCP. From the last byte that was read on the stream is TCP's. Asks for both locks, and
    /// `can_downgrade`.
    pub fn take_back(&self, capacity: u64) -> Result<(), Corrupt> {
        let head = self.sent.head.load(Relaxed);
        let tail = self.received.tail.load(Acquire);
        let length = head.wrapping_sub(tail);
        if length > capacity {
            return Err(Corrupt);
        }
        // Before the bytes are gone from the ring: a sender that is killed here must not seem to have
        // ended its stream behind the bytes that are left.
        self.sender.backlog_at.store(tail, Relaxed);
        self.sender.backlog.store(length, Release);
        self.sent.head.store(tail, Release);
        self.downgrade();
        Ok(())
    }

    /// What was taken back and is not TCP's yet: its place in the ring, and its length.
    pub fn backlog(&self) -> Option<(u64, u64)> {
        let length = self.sender.backlog.load(Relaxed);
        (length > 0).then(|| (self.sender.backlog_at.load(Relaxed), length))
    }

    /// TCP has accepted the first bytes of the backlog; or they are lost, with the connection.
    pub fn accepted(&self, (from, length): (u64, u64), bytes: u64) {
        self.sender.backlog_at.store(from.wrapping_add(bytes), Relaxed);
        self.sender.backlog.store(length.saturating_sub(bytes), Relaxed);
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
            self.sender.messages.fetch_add(1, Relaxed);
        }
        is_published
    }

    /// Takes back what `publish` has published while the stream is TCP's.
    pub fn unpublish(&self, from: u64, length: u64) {
        let to = from.wrapping_add(length);
        let _ = self.sent.head.compare_exchange(to, from, Release, Relaxed);
    }

    /// The receiver's bell.
    pub fn bell(&self) -> &Bell {
        &self.received.bell
    }

    /// Whether the receiver wants TCP for good.
    pub fn is_left(&self) -> bool {
        self.received.wish.load(Acquire) == LEAVES
    }

    /// Bytes of the ring that the receiver has read, as it says.
    pub fn taken(&self) -> u64 {
        self.received.tail.load(Relaxed)
    }

    /// The futex on which the sender sleeps until the ring has room: it is 1 then.
    pub fn full(&self) -> &AtomicU32 {
        &self.sent.is_full
    }

    /// On which CPU the sender waits, before it does.
    pub fn waits_on(&self, cpu: u32) {
        if self.sent.cpu.load(Relaxed) != cpu + 1 {
            self.sent.cpu.store(cpu + 1, Relaxed);
        }
    }

    /// Whether the sender last waited on this CPU: it cannot run while the caller does.
    pub fn is_on(&self, cpu: u32) -> bool {
        self.sent.cpu.load(Relaxed) == cpu + 1
    }

    fn publish_change(&self, changes: u64, place: u64) {
        self.sent.places[(changes % 2) as usize].store(place, Relaxed);
        self.sent.changes.store(changes.wrapping_add(1), Release);
    }
}

/// For the receiver, under its lock.
impl Direction {
    pub fn receiver_lock(&self) -> &Lock {
        &self.receiver.lock
    }

    /// From now on the receiver follows upgrades. It has read this many bytes from TCP.
    pub fn ready(&self, read: u64) {
        self.receiver.read.store(read, Relaxed);
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
        let at = self.sent.places[(changes.wrapping_sub(1) % 2) as usize].load(Relaxed);
        changes.is_multiple_of(2) && (changes == 0 || at == self.received.tail.load(Acquire))
    }

    /// Where the next bytes are. Follows the changes whose place is reached.
    pub fn source(&self, capacity: u64) -> Result<Source, Corrupt> {
        loop {
            let followed = self.received.followed.load(Relaxed);
            let ahead = self.sent.changes.load(Acquire).wrapping_sub(followed);
            if ahead > 2 {
                return Err(Corrupt);
            }
            let place = self.sent.places[(followed % 2) as usize].load(Relaxed);
            let change = (ahead > 0).then_some(place);
            let is_tcp = followed.is_multiple_of(2);
            let reached = if is_tcp {
                let left = change.map(|at| at.wrapping_sub(self.receiver.read.load(Relaxed)));
                match left {
                    None => return Ok(Source::Tcp(u64::MAX)),
                    Some(0) => true,
                    Some(left) if left <= u64::MAX / 2 => return Ok(Source::Tcp(left)),
                    Some(_) => return Err(Corrupt),
                }
            } else {
                let tail = self.received.tail.load(Relaxed);
                let end = change.unwrap_or_else(|| self.sent.head.load(Acquire));
                match end.wrapping_sub(tail) {
                    0 if change.is_none() => return Ok(Source::Empty),
                    0 => true,
                    length if length <= capacity => {
                        return Ok(Source::Ring { from: tail, length });
                    }
                    _ => return Err(Corrupt),
                }
            };
            debug_assert!(reached);
            // A signal handler of the same thread may have followed it.
            let next = followed.wrapping_add(1);
            let _ = self.received.followed.compare_exchange(followed, next, Release, Relaxed);
        }
    }

    /// At the end of the stream: whether the sender was killed with bytes that it took back.
    pub fn is_cut(&self) -> bool {
        self.sender.backlog.load(Acquire) > 0
    }

    /// Whether the sender has sent or changed something that was not read or followed. Asks for no
    /// lock: another thread may read it first.
    pub fn has_news(&self) -> bool {
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

    /// Threads that sleep until the bell is rung: before it is armed for them, and after.
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

/// For both.
impl Direction {
    /// Bytes of the ring, whatever the other process wrote.
    pub fn capacity(&self) -> u64 {
        let growth = self.received.growth.load(Relaxed).min(LARGEST_RING - SMALLEST_RING);
        1 << (SMALLEST_RING + growth)
    }

    pub fn can_grow(&self) -> bool {
        self.received.growth.load(Relaxed) < LARGEST_RING - SMALLEST_RING
            && self.received.is_small.load(Relaxed) == 0
    }

    /// For the receiver, before it is ready: the ring does not grow.
    pub fn keep_small(&self) {
        self.received.is_small.store(1, Relaxed);
    }

    /// Makes the ring four times as large, if it is empty. Asks for both locks.
    pub fn grow(&self) -> bool {
        let growth = self.received.growth.load(Relaxed);
        let is_empty = self.sent.head.load(Relaxed) == self.received.tail.load(Acquire);
        let can = is_empty && self.can_grow();
        if can {
            self.received.growth.store(growth + 2, Relaxed);
        }
        can
    }

    /// Makes the ring as small as at first, if it is empty. Asks for both locks.
    pub fn shrink(&self) -> bool {
        let is_empty = self.sent.head.load(Relaxed) == self.received.tail.load(Acquire);
        if is_empty {
            self.received.growth.store(0, Relaxed);
        }
        is_empty
    }
}

#[cfg(all(test, not(loom)))]
#[path = "direction_test.rs"]
mod tests;
