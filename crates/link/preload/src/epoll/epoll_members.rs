// SPDX-License-Identifier: Apache-2.0
//! The linked connections of each epoll set, for the one thread that waits there: it looks at their
//! rings itself, and their bells are armed only while it sleeps. If several threads wait for a set,
//! or something else does (another set, poll, another process), all bells stay armed.

use crate::epoll::epoll_member::Member;
use crate::epoll::shots::Others;
use crate::links::busy_wait::{Spin, ticks, ticks_per_microsecond};
use crate::links::children;
use crate::links::slots::Slot;
use crate::state;
use crate::state::lock;
use crate::stream::eventfds::{self, ARMED, BY_WAITER};
use crate::stream::{buffers, downgrade, send};
use core::ffi::c_int;
use core::mem::MaybeUninit;
use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release, SeqCst};
use core::sync::atomic::{AtomicU32, AtomicU64, fence};
use libc::{epoll_event, iovec};
use tare_link_segment::Lock;
use tare_shm::syscall::Errno;

/// Connections of a set; with more of them all bells stay armed.
pub const MOST: usize = 64;
/// Sets that are known.
pub const MOST_SETS: usize = 64;
/// In `Members::waiter`.
const SEVERAL: u32 = u32::MAX;

/// Largest number of waits in a row without the kernel, and of microseconds, while bytes arrive.
const SKIPS: u32 = 8;
const SKIPPED: u64 = 50;

pub struct Members {
    /// The thread that waits; 0 for none yet, or `SEVERAL`.
    waiter: AtomicU32,
    /// No member is beyond.
    highest: AtomicU32,
    list: [Member; MOST],
    pub(super) set: AtomicU32,
    /// Forks when it was created.
    forks: AtomicU32,
    /// For changes of members, and threads in a call of the kernel's that waits for the set: while
    /// there are any, changes are told at once. Not 0: something was changed and not told.
    lock: Lock,
    in_kernel: AtomicU32,
    is_changed: AtomicU32,
    skips: AtomicU32,
    looked: AtomicU64,
    /// Where the next wait begins to look, and not 0 if the last one found no room for all links.
    first: AtomicU32,
    is_crowded: AtomicU32,
    spin: Spin,
    pub(super) others: Others,
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

/// A member that sleeps; its slot is in use until it wakes.
#[derive(Clone, Copy)]
pub struct Sleeper(Option<&'static Slot>);

pub type Sleepers = [Sleeper; MOST];
pub const NOBODY: Sleepers = [Sleeper(None); MOST];

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
            looked: AtomicU64::new(0),
            first: AtomicU32::new(0),
            is_crowded: AtomicU32::new(0),
            spin: Spin::new(),
            others: Others::new(),
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
        self.others.clear();
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
        self.ask_kernel();
        Some(&self.list[number])
    }

    /// Whether the library knows if an event of this link is to come (EPOLLONESHOT).
    pub fn has_shot(&self, place: u32) -> bool {
        self.used().iter().any(|member| member.is_of(place) && member.shot.is_known())
    }

    /// The kernel may have more to report than that there are bytes.
    fn ask_kernel(&self) {
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
        if self.waiter.swap(SEVERAL, AcqRel) != SEVERAL {
            fence(SeqCst);
            self.tell();
            self.each(|_, slot| {
                slot.watch.store(ARMED, Relaxed);
                eventfds::settle_for_sets(slot);
            });
        }
    }

    pub(super) fn used(&self) -> &[Member] {
        &self.list[..(self.highest.load(Relaxed) as usize).min(MOST)]
    }

    fn each(&self, mut what: impl FnMut(&Member, &'static Slot)) {
        for member in self.used() {
            if let Some(slot) = member.enter() {
                what(member, slot);
                slot.leave();
            }
        }
    }

    /// Whether an event is of a bell that was rung for nothing. Edges may be reported twice.
    pub fn is_vain(&self, event: epoll_event) -> bool {
        let is_of = |member: &&Member| {
            member.data() == event.u64
                && event.events & !member.input() == 0
                && !member.has_edges()
                && !member.is_once()
        };
        self.used().iter().filter(is_of).any(|member| {
            member.enter().is_some_and(|slot| {
                let is_vain = eventfds::is_vain(slot);
                slot.leave();
                is_vain
            })
        })
    }

    /// Whether the calling thread alone waits for the set, and there are links in it.
    pub fn are_for(&self, thread: u32) -> bool {
        if self.highest.load(Relaxed) == 0 {
            return false;
        }
        match self.waiter.compare_exchange(0, thread, AcqRel, Acquire) {
            Ok(_) => true,
            Err(SEVERAL) => false,
            Err(waiter) if waiter == thread => true,
            Err(_) => {
                self.keep_armed();
                false
            }
        }
    }

    /// Whether the waiter arms the bell of this link.
    fn has(&self, slot: &Slot) -> bool {
        if slot.is_shared() || children::has_forked_since(self.forks.load(Relaxed)) {
            return false;
        }
        match slot.watch.load(Relaxed) {
            BY_WAITER => true,
            ARMED if slot.sets.load(Relaxed) == 1 => {
                slot.watch.store(BY_WAITER, Relaxed);
                // Either this thread sees that another one waits now, or that one arms the bell.
                fence(SeqCst);
                let is_alone = self.waiter.load(Relaxed) != SEVERAL;
                if !is_alone {
                    slot.watch.store(ARMED, Relaxed);
                    eventfds::settle_for_sets(slot);
                }
                is_alone
            }
            _ => false,
        }
    }

    /// After the kernel has reported edges: the next bytes are one again, even if the program does not
    /// read before.
    pub fn renew_edges(&self) {
        self.each(|_, slot| {
            let is_rung = slot.parts().incoming.bell().is_rung();
            if is_rung && slot.has_edges.load(Relaxed) != 0 && eventfds::is_armed(slot) {
                eventfds::settle_again(slot);
            }
        });
    }

    /// Before the kernel is asked without a sleep: no eventfd says that there are bytes if there are
    /// none.
    pub fn clear_bells(&self) {
        self.each(|_, slot| {
            let incoming = slot.parts().incoming;
            if eventfds::has_number(slot) && !incoming.has_news() {
                eventfds::settle_for_sets(slot);
            }
        });
    }

    /// Events of links whose rings have bytes, or room: at most `most`, and whether the kernel may
    /// have others at once. An error if they cannot be written.
    pub fn collect(&self, events: *mut epoll_event, most: c_int) -> Result<(c_int, bool), Errno> {
        let most = usize::try_from(most).unwrap_or(0).min(MOST);
        let mut found = [const { MaybeUninit::<epoll_event>::uninit() }; MOST];
        let mut count = 0;
        let mut has_more = false;
        let used = self.used();
        let first = (self.first.load(Relaxed) as usize).min(used.len());
        let mut next = 0;
        let mut look = |number: usize, member: &Member, slot: &'static Slot| {
            let (input, output) = (member.input(), member.output());
            if count == most || input | output == 0 {
                return;
            }
            let is_ours = self.has(slot);
            let has_room = output != 0 && is_ours && send::has_room(slot);
            has_more |= output != 0 && (!has_room || member.wants_more());
            let mut ready = if has_room { output } else { 0 };
            let incoming = slot.parts().incoming;
            // TCP may have bytes that are to be read first; and of other links the kernel knows.
            has_more |= input != 0
                && (incoming.followed().is_multiple_of(2) || !is_ours && incoming.has_news());
            let mark = incoming.mark();
            // No bell is rung again for bytes behind unread ones, and an edge too many does no harm.
            if input != 0
                && (is_ours || member.has_edges())
                && member.is_news(mark)
                && incoming.has_news()
                && (eventfds::has_bytes(slot) || member.has_edges() && incoming.unread() > 0)
            {
                member.has_reported(mark);
                ready |= input;
            }
            if ready != 0 {
                found[count].write(epoll_event { events: ready, u64: member.data() });
                (count, next) = (count + 1, number + 1);
            }
        };
        for number in (first..used.len()).chain(0..first) {
            if let Some(slot) = used[number].enter() {
                look(number, &used[number], slot);
                slot.leave();
            }
        }
        let is_crowded = count == most;
        self.is_crowded.store(is_crowded.into(), Relaxed);
        // Those for which there was no room are first in the next wait.
        self.first.store(if is_crowded { next as u32 } else { 0 }, Relaxed);
        let length = count * size_of::<epoll_event>();
        let own = iovec { iov_base: found.as_mut_ptr().cast(), iov_len: length };
        let programs = iovec { iov_base: events.cast(), iov_len: length };
        if count > 0 {
            buffers::write(&[own], &[programs])?;
        }
        Ok((count as c_int, has_more))
    }

    /// Waits some microseconds for bytes of any link.
    pub fn spin(&self) -> bool {
        // Once: a set that is closed meanwhile has fewer, and each link that was entered must be left.
        let used = self.used();
        let mut entered = [None; MOST];
        for (member, slot) in used.iter().zip(&mut entered) {
            *slot = member.enter();
        }
        let links = || {
            used.iter().zip(&entered).filter_map(|(member, slot)| slot.map(|slot| (member, slot)))
        };
        let is_ready = links().next().is_some_and(|(_, first)| {
            let parts = first.parts();
            self.spin.wait(parts.outgoing, parts.incoming, &|| {
                links().any(|(member, slot)| {
                    let incoming = slot.parts().incoming;
                    member.input() != 0 && incoming.has_news() && member.is_news(incoming.mark())
                })
            })
        });
        links().for_each(|(_, slot)| slot.leave());
        is_ready
    }

    /// Before the thread sleeps: arms the bells. Whether there is something to do at once.
    pub fn fall_asleep(&self, sleepers: &mut Sleepers) -> bool {
        let mut is_any = false;
        for (member, sleeper) in self.used().iter().zip(sleepers) {
            if member.input() == 0 {
                continue;
            }
            let Some(slot) = member.enter() else { continue };
            if !self.has(slot) {
                slot.leave();
                continue;
            }
            let has_bytes = eventfds::falls_asleep(slot);
            is_any |= has_bytes && member.is_news(slot.parts().incoming.mark());
            if downgrade::is_due(slot) {
                downgrade::serve(slot);
            }
            *sleeper = Sleeper(Some(slot));
        }
        is_any
    }

    pub fn wake_up(&self, sleepers: &mut Sleepers) {
        for sleeper in sleepers {
            if let Some(slot) = sleeper.0.take() {
                eventfds::wakes_up(slot);
                slot.leave();
            }
        }
    }

    /// As epoll_ctl for a link in the set, where no thread waits in the kernel: it is told later.
    /// `None` if it has to do that itself.
    pub fn change(
        &self,
        place: u32,
        operation: c_int,
        event: Option<epoll_event>,
    ) -> Option<Result<(), Errno>> {
        let is_late = || {
            fence(SeqCst);
            self.waiter.load(Relaxed) == SEVERAL || self.in_kernel.load(Relaxed) > 0
        };
        let member = self.used().iter().find(|member| member.is_of(place))?;
        let slot = member.enter()?;
        let held = lock::take(&self.lock);
        // Another program may have the connection, for which the kernel alone reports.
        let is_alone = self.has(slot) && !slot.parts().incoming.is_left();
        let result = if is_alone && !is_late() {
            self.is_changed.store(1, Relaxed);
            member.change(operation, event)
        } else {
            None
        };
        lock::release(&self.lock, held);
        slot.leave();
        if result.is_none() || is_late() {
            self.tell();
        }
        result
    }

    /// Tells the kernel what was changed.
    pub fn tell(&self) {
        if self.is_changed.load(Relaxed) != 0 {
            let held = lock::take(&self.lock);
            self.is_changed.store(0, Relaxed);
            let set = self.set.load(Relaxed) as c_int;
            self.used().iter().for_each(|member| member.tell(set));
            lock::release(&self.lock, held);
        }
    }

    /// A call of the kernel's that may wait for the set.
    pub fn ask(&self, call: impl FnOnce() -> c_int) -> c_int {
        self.in_kernel.fetch_add(1, SeqCst);
        self.tell();
        let count = call();
        self.in_kernel.fetch_sub(1, SeqCst);
        count
    }

    /// The kernel was asked.
    pub fn looked(&self) {
        self.skips.store(0, Relaxed);
        self.looked.store(ticks(), Relaxed);
    }

    /// Whether a wait has to ask the kernel before it looks at the links: those alone would take all
    /// the room that the program has for events, each time.
    pub fn must_ask_first(&self) -> bool {
        self.is_crowded.load(Relaxed) != 0 && !self.skip_kernel()
    }

    /// Whether a wait that found bytes may do without what the kernel has.
    pub fn skip_kernel(&self) -> bool {
        let since = ticks().wrapping_sub(self.looked.load(Relaxed));
        let skips = self.skips.load(Relaxed);
        self.skips.store(skips.saturating_add(1), Relaxed);
        skips < SKIPS && since < SKIPPED * ticks_per_microsecond()
    }
}
