// SPDX-License-Identifier: Apache-2.0
//! A link of this process.

use crate::descriptors::reserved_descriptors;
use crate::links::busy_wait::Spin;
use crate::links::interruptible_copy::InterruptibleCopy;
use crate::links::linger_guard::Guard;
use crate::links::liveness;
use crate::links::memory::link_mapping::{DirectionIndex, LinkMapping};
use crate::links::memory::memory_limit::MemoryCharge;
use crate::links::received_counts::ReceivedCounts;
use crate::links::slot_allocation;
use crate::links::waiting_threads::WaitingThreads;
use crate::{kernel, state};
use core::cell::UnsafeCell;
use core::ffi::c_int;
use core::mem::MaybeUninit;
use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed};
use core::sync::atomic::{AtomicI32, AtomicPtr, AtomicU8, AtomicU32, AtomicU64};
use tare_link_segment::{
    Endpoint, LARGEST_RING, Listed, ReferenceCount, SMALLEST_RING, Statistics,
};
use tare_shm::memory;

/// In `Slot::ends`: TCP has still to end, has ended; or a process that delivers has the backlog.
pub const ENDS: u32 = 1;
pub const ENDED: u32 = 2;
pub const DELIVERED: u32 = 3;

/// Times that a ring can grow.
const WINDOWS: usize = (LARGEST_RING - SMALLEST_RING) as usize / 2;

pub struct Slot {
    /// Calls that use it now.
    references: ReferenceCount,
    mapping: UnsafeCell<MaybeUninit<LinkMapping>>,
    /// Larger mappings of the rings that have grown, each of four times the bytes of the one before.
    /// All stay until the link ends: a signal handler may have interrupted a copy.
    windows: [[AtomicPtr<u8>; WINDOWS]; 2],
    /// The eventfd that wakes this end.
    own_eventfd: AtomicI32,
    /// The eventfd that wakes the other end.
    other_eventfd: AtomicI32,
    /// One of the connection's descriptors, -1 for none.
    pub fd: AtomicI32,
    /// A hidden copy of a descriptor that was closed while a call waited, 0 for none.
    kept_descriptor: AtomicI32,
    /// Threads that wait in a call.
    waiters: WaitingThreads,
    /// Waits in signal handlers of threads that have the lock of a way: no other thread waits for it.
    held_in_waits: [AtomicU32; 2],
    /// Process that made it.
    pub process: AtomicU32,
    /// When no other process had this end (`liveness::fork_generation`), and when that was last
    /// checked.
    pub(super) exclusive_since: AtomicU64,
    pub(super) checked_at: AtomicU64,
    /// 1 + its entry in the list of all links, 0 for none.
    entry: AtomicU32,
    /// Not 0: this end sends through TCP for good, and why (`Reason`).
    pub sends_tcp: AtomicU32,
    /// Not 0: the ring was full, it should grow.
    pub wants_room: AtomicU32,
    /// Of the outgoing ring.
    pub memory: MemoryCharge,
    pub interruptible_copy: InterruptibleCopy,
    /// Whether epoll sets have this end's eventfd, and how it is kept for them (`members`); the
    /// number of sets that have it, and whether any reports or reported edges.
    pub watch: AtomicU32,
    pub sets: AtomicU32,
    pub has_edges: AtomicU32,
    /// 1: the eventfd has a number, or gets it at once, though the doorbell is not rung; 2: it may have
    /// one.
    pub is_added: AtomicU32,
    /// Whether calls wait, as `kernel::is_nonblocking` last said; 0 if it must be asked.
    pub blocking_mode: AtomicU32,
    pub received: ReceivedCounts,
    /// Waits for bytes, and for room.
    pub bytes_spin: Spin,
    pub room_spin: Spin,
    /// Sends since the other end was last seen to read, and where it was then.
    pub unread_sends: AtomicU32,
    pub seen_tail: AtomicU64,
    /// An error of the connection that the program has not seen yet, behind bytes of the ring.
    pub error: AtomicI32,
    /// Not 0: the program has ended what it sends, TCP will once it has the backlog (`ENDS`).
    pub ends: AtomicU32,
    /// Not 0: the program reads no more, so the end of the stream is not the other end's.
    pub is_read_shut: AtomicU32,
    /// Not 0: another program may have the connection.
    pub is_given_up: AtomicU32,
    /// Not 0: the program has closed the connection; the service thread has it until TCP has the
    /// backlog.
    pub is_closed: AtomicU32,
    pub(super) guard: Guard,
    /// Its place in the list of all slots.
    place: AtomicU32,
}

// SAFETY: `mapping` is written by the one thread that has taken the slot, before it is used.
unsafe impl Sync for Slot {}

impl Slot {
    pub const fn new() -> Self {
        Self {
            references: ReferenceCount::new(),
            mapping: UnsafeCell::new(MaybeUninit::uninit()),
            windows: [const { [const { AtomicPtr::new(core::ptr::null_mut()) }; WINDOWS] }; 2],
            own_eventfd: AtomicI32::new(0),
            other_eventfd: AtomicI32::new(0),
            fd: AtomicI32::new(0),
            kept_descriptor: AtomicI32::new(0),
            waiters: WaitingThreads::new(),
            held_in_waits: [const { AtomicU32::new(0) }; 2],
            process: AtomicU32::new(0),
            exclusive_since: AtomicU64::new(0),
            checked_at: AtomicU64::new(0),
            entry: AtomicU32::new(0),
            sends_tcp: AtomicU32::new(0),
            wants_room: AtomicU32::new(0),
            memory: MemoryCharge::new(),
            interruptible_copy: InterruptibleCopy::new(),
            watch: AtomicU32::new(0),
            sets: AtomicU32::new(0),
            has_edges: AtomicU32::new(0),
            is_added: AtomicU32::new(0),
            blocking_mode: AtomicU32::new(0),
            received: ReceivedCounts::new(),
            bytes_spin: Spin::new(),
            room_spin: Spin::new(),
            unread_sends: AtomicU32::new(0),
            seen_tail: AtomicU64::new(0),
            error: AtomicI32::new(0),
            ends: AtomicU32::new(0),
            is_read_shut: AtomicU32::new(0),
            is_given_up: AtomicU32::new(0),
            is_closed: AtomicU32::new(0),
            guard: Guard::new(),
            place: AtomicU32::new(0),
        }
    }

    /// Whether it was free, and is the caller's now.
    pub fn take(&self) -> bool {
        self.references.take()
    }

    /// Fills a slot that the caller has taken, which is at this place, and uses it.
    pub fn fill(
        &self,
        place: u32,
        mapping: LinkMapping,
        fd: c_int,
        [own_eventfd, other_eventfd]: [c_int; 2],
    ) {
        self.place.store(place, Relaxed);
        // SAFETY: this thread has the slot alone.
        unsafe { (*self.mapping.get()).write(mapping) };
        self.own_eventfd.store(own_eventfd, Relaxed);
        self.other_eventfd.store(other_eventfd, Relaxed);
        self.fd.store(fd, Relaxed);
        self.process.store(state::process_number(), Relaxed);
        self.exclusive_since.store(liveness::fork_generation(), Relaxed);
        self.recheck_sharing();
        self.waiters.clear();
        self.held_in_waits.iter().for_each(|held| held.store(0, Relaxed));
        for word in [
            &self.sends_tcp,
            &self.wants_room,
            &self.watch,
            &self.sets,
            &self.has_edges,
            &self.is_added,
            &self.blocking_mode,
            &self.unread_sends,
            &self.ends,
            &self.is_read_shut,
            &self.is_given_up,
            &self.is_closed,
        ] {
            word.store(0, Relaxed);
        }
        self.guard.clear();
        self.memory.begin();
        self.interruptible_copy.end();
        self.bytes_spin.begin();
        self.room_spin.begin();
        self.seen_tail.store(0, Relaxed);
        self.error.store(0, Relaxed);
        self.references.begin();
    }

    /// For one more user, who must `leave` it; `None` if it has no link.
    pub fn enter(&self) -> Option<&Self> {
        if self.references.enter() {
            return Some(self);
        }
        self.leave();
        None
    }

    pub fn is_used(&self) -> bool {
        self.references.is_used()
    }

    /// For a user of the slot.
    pub fn mapping(&self) -> &LinkMapping {
        // SAFETY: written before the slot was used, and not again while it has users.
        unsafe { (*self.mapping.get()).assume_init_ref() }
    }

    /// The ring of a direction, with this number of bytes; `None` if it cannot be mapped.
    #[inline]
    pub fn ring(&self, way: DirectionIndex, capacity: u64) -> Option<&[AtomicU8]> {
        let first = self.mapping().rings[way as usize];
        if capacity <= first.len() as u64 { Some(first) } else { self.window(way, capacity) }
    }

    #[cold]
    fn window(&self, way: DirectionIndex, capacity: u64) -> Option<&[AtomicU8]> {
        let first = self.mapping().rings[way as usize];
        let length = |number: usize| first.len() << (2 * (number + 1));
        let number = (0..WINDOWS).find(|number| length(*number) as u64 >= capacity)?;
        let (place, length) = (&self.windows[way as usize][number], length(number));
        let mut base = place.load(Acquire);
        if base.is_null() {
            // SAFETY: a shared mapping, and the file has the largest ring.
            let new = unsafe { memory::map_again(first.as_ptr().cast_mut().cast(), length) };
            let new = new.ok()?;
            base = match place.compare_exchange(base, new, AcqRel, Acquire) {
                Ok(_) => new,
                Err(other) => {
                    // SAFETY: not given out.
                    unsafe { memory::unmap(new, length) };
                    other
                }
            };
        }
        // SAFETY: mapped until the last user of the slot has ended; atomics only.
        Some(unsafe { core::slice::from_raw_parts(base.cast(), length) })
    }

    /// Its place in the list of all slots.
    pub fn place(&self) -> u32 {
        self.place.load(Relaxed)
    }

    pub fn own_eventfd(&self) -> c_int {
        self.own_eventfd.load(Relaxed)
    }

    /// Wakes the other end.
    pub fn wake_other(&self) {
        kernel::add(self.other_eventfd.load(Relaxed));
    }

    /// A set has its eventfd no more.
    pub fn leaves_set(&self) {
        let _ = self.sets.fetch_update(AcqRel, Relaxed, |sets| sets.checked_sub(1));
    }

    /// The call that used the slot ends.
    pub fn leave(&self) {
        if self.references.leave() {
            self.free();
        }
    }

    /// The calling thread begins to wait.
    pub fn begin_wait(&self) {
        if !self.waiters.begin() {
            self.forget_cancelled();
            self.waiters.begin();
        }
        self.interrupted(|held| held.fetch_add(1, AcqRel));
    }

    pub fn end_wait(&self) {
        self.interrupted(|held| held.fetch_sub(1, AcqRel));
        self.waiters.end();
    }

    /// For each lock of this end that the thread has, though it waits: it is in a signal handler,
    /// which has interrupted a call.
    fn interrupted(&self, what: impl Fn(&AtomicU32) -> u32) {
        let mapping = self.mapping();
        let locks = [mapping.outgoing.sender_lock(), mapping.incoming.receiver_lock()];
        for (lock, held) in locks.into_iter().zip(&self.held_in_waits) {
            if lock.is_of(state::thread_number()) {
                what(held);
            }
        }
    }

    /// Whether the lock of a way is held by a thread that waits.
    pub fn is_held_in_wait(&self, way: DirectionIndex) -> bool {
        self.held_in_waits[way as usize].load(Acquire) != 0
    }

    /// Threads that were cancelled in a call do not use the slot any more. For a user.
    fn forget_cancelled(&self) {
        self.references.forget(self.waiters.take_cancelled());
    }

    /// Before a descriptor of the connection is closed: calls that wait go on with a copy, since its
    /// number may soon be another file's.
    pub fn keep(&self, fd: c_int) {
        if self.waiters.has_others() {
            self.keep_copy(fd);
        }
    }

    /// Whether there is a copy of the descriptor, which is closed with the link.
    pub fn keep_copy(&self, fd: c_int) -> bool {
        if self.kept_descriptor.load(Acquire) == 0
            && let Some(copy) = reserved_descriptors::copy(fd)
            && self.kept_descriptor.compare_exchange(0, copy, AcqRel, Relaxed).is_err()
        {
            reserved_descriptors::close(copy);
        }
        self.kept_descriptor.load(Acquire) != 0
    }

    /// Any descriptor of the connection. Only for whoever has the sender's or the receiver's lock it
    /// stays one: `closing::replace` takes both.
    pub fn any_descriptor(&self) -> Option<c_int> {
        let fd = match self.kept_descriptor.load(Acquire) {
            0 => self.fd.load(Relaxed),
            kept => kept,
        };
        Some(fd).filter(|fd| *fd >= 0)
    }

    /// TCP has the backlog.
    pub fn unguard(&self, fd: c_int) {
        self.guard.end(fd);
    }

    /// The program has set SO_LINGER. Under the sender's lock.
    pub fn set_linger(&self, fd: c_int, seconds: Option<c_int>) {
        // The end of a backlog may have set it as it was before.
        kernel::set_linger(fd, seconds);
        self.guard.set(fd, seconds);
    }

    /// How the program wants to close, as `kernel::linger`.
    pub fn linger(&self, fd: c_int) -> Option<c_int> {
        self.guard.linger(fd)
    }

    /// Takes the link away when the last call that uses it ends. For a user.
    pub fn close(&self) {
        self.forget_cancelled();
        self.references.close();
    }

    /// Enters the link in the list that `tare link ps` prints.
    pub fn list(&self, ends: [Endpoint; 2]) {
        let link = &self.mapping().link;
        let process = self.process.load(Relaxed);
        let listed = Listed { process, end: link.end(), place: link.place() as u64, ends };
        let listing = state::statistics().map(Statistics::listing);
        let entry = listing.and_then(|listing| listing.add(&listed, kernel::exists));
        self.entry.store(entry.map_or(0, |entry| entry as u32 + 1), Relaxed);
    }

    fn unlist(&self) {
        let entry = self.entry.swap(0, Relaxed);
        let process = self.process.load(Relaxed);
        // A child of fork has the number, but not the link that is listed.
        if entry != 0
            && process == state::process_number()
            && let Some(statistics) = state::statistics()
        {
            statistics.listing().remove(entry as usize - 1, process);
        }
    }

    /// The last user has ended.
    fn free(&self) {
        self.unlist();
        self.received.flush();
        self.memory.uncharge_all();
        for fd in [&self.own_eventfd, &self.other_eventfd, &self.kept_descriptor] {
            reserved_descriptors::close(fd.swap(0, AcqRel));
        }
        for way in [DirectionIndex::Outgoing, DirectionIndex::Incoming] {
            for (number, window) in self.windows[way as usize].iter().enumerate() {
                let base = window.swap(core::ptr::null_mut(), AcqRel);
                if !base.is_null() {
                    let length = self.mapping().rings[way as usize].len() << (2 * (number + 1));
                    // SAFETY: the last user has ended, and the connection is closed.
                    unsafe { memory::unmap(base, length) };
                }
            }
        }
        // SAFETY: the last user has ended, and the connection is closed.
        unsafe { self.mapping().link.unmap() };
        let place = self.place.load(Relaxed);
        self.references.free();
        slot_allocation::freed(place);
    }
}
