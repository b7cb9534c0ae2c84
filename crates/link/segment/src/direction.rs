// SPDX-License-Identifier: Apache-2.0
use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release, SeqCst};
#[cfg(not(loom))]
use core::sync::atomic::{AtomicU32, AtomicU64, fence};
#[cfg(loom)]
use loom::sync::atomic::{AtomicU32, AtomicU64, fence};

#[cfg(not(loom))]
use crate::Reason;
use crate::{Doorbell, Lock};

mod receiver;
mod sender;

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
    /// Why it last changed from the ring to TCP, 0 if it did not.
    #[cfg(not(loom))]
    downgraded: AtomicU32,
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
    /// Bytes that were taken back, 0 if TCP has accepted all of them; where they are in the ring, and
    /// the number of TCP's bytes before them. How many TCP has accepted, the sender knows by `written`,
    /// and the receiver of a sender that was killed by `read`.
    backlog: AtomicU64,
    backlog_at: AtomicU64,
    backlog_behind: AtomicU64,
    /// Not 0: the kernel resets the connection if the sender is killed with a backlog.
    is_guarded: AtomicU32,
}

/// The receiver's own.
#[repr(C, align(128))]
#[derive(Debug, Default)]
struct Receiver {
    /// Bytes read from TCP since the beginning of the connection.
    read: AtomicU64,
    /// Not 0 while the receiver reads from TCP without a limit.
    reading: AtomicU32,
    /// Threads that sleep until the doorbell is rung.
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
    doorbell: Doorbell,
    /// Why the receiver wants TCP for good, 0 if it does not.
    #[cfg(not(loom))]
    left: AtomicU32,
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
    /// Why the receiver wants TCP for good, if it does.
    pub left: Option<Reason>,
    /// Why the stream last changed from the ring to TCP.
    pub downgraded: Option<Reason>,
}

#[cfg(not(loom))]
impl Direction {
    /// This number of short waits of the sender's saved a sleep.
    pub fn count_spins(&self, times: u64) {
        self.sender.spins.fetch_add(times, Relaxed);
    }

    pub fn totals(&self) -> Totals {
        let changes = self.sent.changes.load(Relaxed);
        Totals {
            ring_bytes: self.sent.head.load(Relaxed),
            tcp_bytes: self.sender.written.load(Relaxed),
            messages: self.sender.messages.load(Relaxed),
            spins: self.sender.spins.load(Relaxed),
            wakes: self.received.doorbell.rings(),
            upgrades: changes.div_ceil(2),
            downgrades: changes / 2,
            left: self.is_left().then(|| self.left_because()),
            downgraded: (changes > 1).then(|| Reason::of(self.sender.downgraded.load(Relaxed))),
        }
    }

    /// Before the receiver leaves. The first reason stays.
    pub fn leaves_because(&self, reason: Reason) {
        let _ = self.received.left.compare_exchange(0, reason as u32, Relaxed, Relaxed);
    }

    /// Why the receiver wants TCP for good.
    pub fn left_because(&self) -> Reason {
        Reason::of(self.received.left.load(Relaxed))
    }

    /// With a change from the ring to TCP.
    pub fn downgrades_because(&self, reason: Reason) {
        self.sender.downgraded.store(reason as u32, Relaxed);
    }
}

const RING: u32 = 1 << 31;
const READY: u32 = 1;
const LEAVES: u32 = 2;

/// For both.
impl Direction {
    /// The place of one of the last two changes.
    fn place_of(&self, change: u64) -> u64 {
        self.sent.places[(change % 2) as usize].load(Relaxed)
    }

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
            self.forget_backlog();
            self.received.growth.store(0, Relaxed);
        }
        is_empty
    }
}

#[cfg(all(test, not(loom)))]
#[path = "direction_test.rs"]
mod tests;
