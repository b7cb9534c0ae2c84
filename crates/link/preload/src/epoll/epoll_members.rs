// SPDX-License-Identifier: Apache-2.0
//! The linked connections of each epoll set, for the one thread that waits there: it looks at their
//! rings itself, and their doorbells are armed only while it sleeps. If several threads wait for a set,
//! or something else does (another set, poll, another process), all doorbells stay armed.

use crate::epoll::epoll_member::Member;
use crate::epoll::one_shot_state::UserDataFilter;
use crate::links::busy_wait::{Spin, ticks, ticks_per_microsecond};
use crate::links::fork_handlers;
use crate::links::slots::Slot;
use crate::state;
use crate::state::lock;
use crate::stream::eventfds::{self, ARMED, BY_WAITER};
use core::ffi::c_int;
use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release, SeqCst};
use core::sync::atomic::{AtomicU32, AtomicU64, fence};
use libc::epoll_event;
use tare_link_segment::Lock;
use tare_shm::syscall::Errno;

/// Connections of a set; with more of them all doorbells stay armed.
pub const MOST: usize = 64;
/// Sets that are known.
pub const MOST_SETS: usize = 64;
/// In `Members::waiter`.
const MANY_WAITERS: u32 = u32::MAX;

/// Largest number of waits in a row without the kernel, and of microseconds, while bytes arrive.
const SKIPS: u32 = 8;
const SKIPPED: u64 = 50;

pub struct Members {
    /// The thread that waits; 0 for none yet, or `MANY_WAITERS`.
    waiter: AtomicU32,
    /// No member is beyond.
    highest: AtomicU32,
    list: [Member; MOST],
    pub(super) set: AtomicU32,
    /// Forks when it was created.
    forks: AtomicU32,
    /// For changes of members, and threads in a call of the kernel's that waits for the set: while
    /// there are any, changes reach it at once. Not 0: something was changed that the kernel does not
    /// have.
    lock: Lock,
    in_kernel: AtomicU32,
    is_changed: AtomicU32,
    skips: AtomicU32,
    last_kernel_call: AtomicU64,
    /// For `epoll_waiter`: where the next wait begins to look, and not 0 if the last one found no room
    /// for all links.
    pub(super) first: AtomicU32,
    pub(super) is_crowded: AtomicU32,
    pub(super) spin: Spin,
    pub(super) other_data: UserDataFilter,
}

static ALL: [Members; MOST_SETS] = [const { Members::new() }; MOST_SETS];

/// Those of the set with this number.
pub fn of(set: usize) -> &'static Members {
    &ALL[set]
}

/// In the child of a fork: threads of the parent change nothing here, and do not wait.
pub fn forked() {
    for members in &ALL {
        members.lock.clear();
        members.in_kernel.store(0, Relaxed);
    }
}

impl Members {
    const fn new() -> Self {
        Self {
            waiter: AtomicU32::new(0),
            highest: AtomicU32::new(0),
            list: [const { Member::new() }; MOST],
            set: AtomicU32::new(0),
            forks: AtomicU32::new(0),
            lock: Lock::new(),
            in_kernel: AtomicU32::new(0),
            is_changed: AtomicU32::new(0),
            skips: AtomicU32::new(0),
            last_kernel_call: AtomicU64::new(0),
            first: AtomicU32::new(0),
            is_crowded: AtomicU32::new(0),
            spin: Spin::new(),
            other_data: UserDataFilter::new(),
        }
    }

    /// For a new set.
    pub fn clear(&self, set: c_int) {
        self.set.store(set as u32, Relaxed);
        self.forks.store(state::forks(), Relaxed);
        self.list.iter().for_each(Member::clear);
        self.highest.store(0, Relaxed);
        self.in_kernel.store(0, Relaxed);
        self.is_changed.store(0, Relaxed);
        self.first.store(0, Relaxed);
        self.is_crowded.store(0, Relaxed);
        self.spin.begin();
        self.other_data.clear();
        self.waiter.store(0, Release);
    }

    /// Another descriptor of the set is closed.
    pub fn use_descriptor(&self, set: c_int) {
        self.set.store(set as u32, Relaxed);
    }

    /// A link is in the set, for which the kernel gets this event. `None` if there are too many.
    pub fn put(&self, place: u32, fd: c_int, event: epoll_event) -> Option<&Member> {
        let known = self.list.iter().position(|member| member.is_of(place));
        let Some(number) = known.or_else(|| self.list.iter().position(Member::take)) else {
            self.keep_armed();
            return None;
        };
        self.list[number].fill(place, fd, event);
        self.highest.fetch_max(number as u32 + 1, Relaxed);
        self.stop_skipping();
        Some(&self.list[number])
    }

    /// Whether the library knows if an event of this link is to come (EPOLLONESHOT).
    pub fn knows_one_shot(&self, place: u32) -> bool {
        self.used().iter().any(|member| member.is_of(place) && member.one_shot.is_known())
    }

    /// The kernel may have more to report than that there are bytes.
    fn stop_skipping(&self) {
        self.skips.store(SKIPS, Relaxed);
    }

    /// The state of a connection has changed: the kernel reports edges of what there is anew.
    pub fn report_again(&self, place: u32) {
        self.used().iter().filter(|member| member.is_of(place)).for_each(Member::report_again);
    }

    pub fn remove(&self, place: u32) {
        self.list.iter().for_each(|member| member.remove(place));
    }

    /// More than the one thread waits for the set.
    pub fn keep_armed(&self) {
        if self.waiter.swap(MANY_WAITERS, AcqRel) != MANY_WAITERS {
            fence(SeqCst);
            self.update_kernel();
            self.each(|_, slot| {
                slot.watch.store(ARMED, Relaxed);
                eventfds::settle_for_sets(slot);
            });
        }
    }

    pub(super) fn used(&self) -> &[Member] {
        &self.list[..(self.highest.load(Relaxed) as usize).min(MOST)]
    }

    pub(super) fn each(&self, mut what: impl FnMut(&Member, &'static Slot)) {
        for member in self.used() {
            if let Some(slot) = member.enter() {
                what(member, slot);
                slot.leave();
            }
        }
    }

    /// Whether an event is of a doorbell that was rung for nothing. Edges may be reported twice.
    pub fn is_spurious(&self, event: epoll_event) -> bool {
        let is_of = |member: &&Member| {
            member.data() == event.u64
                && event.events & !member.input() == 0
                && !member.has_edges()
                && !member.is_one_shot()
        };
        self.used().iter().filter(is_of).any(|member| {
            member.enter().is_some_and(|slot| {
                let is_spurious = eventfds::is_spurious(slot);
                slot.leave();
                is_spurious
            })
        })
    }

    /// Whether the calling thread alone waits for the set, and there are links in it.
    pub fn has_sole_waiter(&self, thread: u32) -> bool {
        if self.highest.load(Relaxed) == 0 {
            return false;
        }
        match self.waiter.compare_exchange(0, thread, AcqRel, Acquire) {
            Ok(_) => true,
            Err(MANY_WAITERS) => false,
            Err(waiter) if waiter == thread => true,
            Err(_) => {
                self.keep_armed();
                false
            }
        }
    }

    /// Whether the waiter arms the doorbell of this link.
    pub(super) fn waiter_arms(&self, slot: &Slot) -> bool {
        if slot.is_shared() || fork_handlers::has_forked_since(self.forks.load(Relaxed)) {
            return false;
        }
        match slot.watch.load(Relaxed) {
            BY_WAITER => true,
            ARMED if slot.sets.load(Relaxed) == 1 => {
                slot.watch.store(BY_WAITER, Relaxed);
                // Either this thread sees that another one waits now, or that one arms the doorbell.
                fence(SeqCst);
                let is_alone = self.waiter.load(Relaxed) != MANY_WAITERS;
                if !is_alone {
                    slot.watch.store(ARMED, Relaxed);
                    eventfds::settle_for_sets(slot);
                }
                is_alone
            }
            _ => false,
        }
    }

    /// As epoll_ctl for a link in the set, where no thread waits in the kernel: it gets it later.
    /// `None` if it has to do that itself.
    pub fn change(
        &self,
        place: u32,
        operation: c_int,
        event: Option<epoll_event>,
    ) -> Option<Result<(), Errno>> {
        let is_late = || {
            fence(SeqCst);
            self.waiter.load(Relaxed) == MANY_WAITERS || self.in_kernel.load(Relaxed) > 0
        };
        let member = self.used().iter().find(|member| member.is_of(place))?;
        let slot = member.enter()?;
        let held = lock::take(&self.lock);
        // Another program may have the connection, for which the kernel alone reports.
        let is_alone = self.waiter_arms(slot) && !slot.mapping().incoming.is_left();
        let result = if is_alone && !is_late() {
            self.is_changed.store(1, Relaxed);
            member.change(operation, event)
        } else {
            None
        };
        lock::release(&self.lock, held);
        slot.leave();
        if result.is_none() || is_late() {
            self.update_kernel();
        }
        result
    }

    /// Gives the kernel what was changed.
    pub fn update_kernel(&self) {
        if self.is_changed.load(Relaxed) != 0 {
            let held = lock::take(&self.lock);
            self.is_changed.store(0, Relaxed);
            let set = self.set.load(Relaxed) as c_int;
            self.used().iter().for_each(|member| member.update_kernel(set));
            lock::release(&self.lock, held);
        }
    }

    /// A call of the kernel's that may wait for the set.
    pub fn call_kernel(&self, call: impl FnOnce() -> c_int) -> c_int {
        self.in_kernel.fetch_add(1, SeqCst);
        self.update_kernel();
        let count = call();
        self.in_kernel.fetch_sub(1, SeqCst);
        count
    }

    /// The kernel was asked.
    pub fn kernel_was_called(&self) {
        self.skips.store(0, Relaxed);
        self.last_kernel_call.store(ticks(), Relaxed);
    }

    /// Whether a wait has to ask the kernel before it looks at the links: those alone would take all
    /// the room that the program has for events, each time.
    pub fn must_call_kernel_first(&self) -> bool {
        self.is_crowded.load(Relaxed) != 0 && !self.skip_kernel()
    }

    /// Whether a wait that found bytes may do without what the kernel has.
    pub fn skip_kernel(&self) -> bool {
        let since = ticks().wrapping_sub(self.last_kernel_call.load(Relaxed));
        let skips = self.skips.load(Relaxed);
        self.skips.store(skips.saturating_add(1), Relaxed);
        skips < SKIPS && since < SKIPPED * ticks_per_microsecond()
    }
}
