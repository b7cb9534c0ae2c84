// SPDX-License-Identifier: Apache-2.0
//! A linked connection in an epoll set: what the program wants to know of it, and what the kernel
//! was told. Many programs change that with every message: they set and clear EPOLLOUT, or remove
//! the connection and add it again. So the kernel is told only before a thread waits for the set, and
//! only what is different then.

use crate::epoll::one_shot_state::{ONCE, OneShotState};
use crate::kernel;
use crate::links::slots::{self, Slot};
use core::ffi::c_int;
use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use core::sync::atomic::{AtomicU32, AtomicU64};
use libc::epoll_event;
use tare_shm::syscall::Errno;

const INPUT: u32 = (libc::EPOLLIN | libc::EPOLLRDNORM) as u32;
const OUTPUT: u32 = (libc::EPOLLOUT | libc::EPOLLWRNORM) as u32;
const EDGES: u32 = libc::EPOLLET as u32;
/// In `Member::slot`: a thread fills it.
const FILLING: u32 = u32::MAX;

pub struct Member {
    /// 1 + the place of the link, 0 for none.
    slot: AtomicU32,
    /// Not 0: the program has taken the connection out of the set.
    is_out: AtomicU32,
    events: AtomicU32,
    data: AtomicU64,
    /// What the kernel has.
    fd: AtomicU32,
    kernel_events: AtomicU32,
    kernel_data: AtomicU64,
    /// The mark of the ring when it was last reported, for edges.
    reported: AtomicU64,
    pub one_shot: OneShotState,
}

impl Member {
    pub const fn new() -> Self {
        Self {
            slot: AtomicU32::new(0),
            is_out: AtomicU32::new(0),
            events: AtomicU32::new(0),
            data: AtomicU64::new(0),
            fd: AtomicU32::new(0),
            kernel_events: AtomicU32::new(0),
            kernel_data: AtomicU64::new(0),
            reported: AtomicU64::new(0),
            one_shot: OneShotState::new(),
        }
    }

    pub fn clear(&self) {
        self.slot.store(0, Relaxed);
    }

    pub fn is_of(&self, place: u32) -> bool {
        self.slot.load(Relaxed) == place + 1
    }

    /// Whether it was free, and is the caller's now.
    pub fn take(&self) -> bool {
        let is_free = self.slot.compare_exchange(0, FILLING, AcqRel, Relaxed).is_ok();
        if is_free {
            self.one_shot.forget();
        }
        is_free
    }

    /// Records what the kernel has of the link with this number.
    pub fn fill(&self, place: u32, fd: c_int, event: epoll_event) {
        self.fd.store(fd as u32, Relaxed);
        self.kernel_events.store(event.events, Relaxed);
        self.kernel_data.store(event.u64, Relaxed);
        self.want(event);
        self.report_again();
        self.slot.store(place + 1, Release);
    }

    fn want(&self, event: epoll_event) {
        self.events.store(event.events, Relaxed);
        self.data.store(event.u64, Relaxed);
        self.is_out.store(0, Relaxed);
    }

    pub fn remove(&self, place: u32) {
        let _ = self.slot.compare_exchange(place + 1, 0, AcqRel, Relaxed);
    }

    /// Its link, for one more user, who must leave it.
    pub fn enter(&self) -> Option<&'static Slot> {
        match self.slot.load(Acquire) {
            0 | FILLING => None,
            place => slots::enter(place - 1),
        }
    }

    /// The place of its link.
    pub fn place(&self) -> Option<u32> {
        Some(self.slot.load(Relaxed)).filter(|place| *place != FILLING)?.checked_sub(1)
    }

    pub fn descriptor(&self) -> c_int {
        self.fd.load(Relaxed) as c_int
    }

    /// What the program wants to know, 0 for nothing.
    pub fn wanted(&self) -> u32 {
        if self.is_out.load(Relaxed) == 0 { self.events.load(Relaxed) } else { 0 }
    }

    /// What is to be reported when there are bytes; 0 for nothing.
    pub fn input(&self) -> u32 {
        self.wanted() & INPUT
    }

    /// What is to be reported while there is room; 0 for nothing. Edges are the kernel's.
    pub fn output(&self) -> u32 {
        let wanted = self.wanted();
        if wanted & EDGES == 0 { wanted & OUTPUT } else { 0 }
    }

    /// Whether there is something that the kernel alone knows.
    pub fn wants_more(&self) -> bool {
        has_more(self.events.load(Relaxed))
    }

    pub fn data(&self) -> u64 {
        self.data.load(Relaxed)
    }

    pub fn has_data(&self, data: u64) -> bool {
        self.place().is_some() && self.data() == data
    }

    pub fn is_one_shot(&self) -> bool {
        self.events.load(Relaxed) & ONCE != 0
    }

    pub fn has_edges(&self) -> bool {
        has_edges(self.events.load(Relaxed))
    }

    /// Whether what is in the ring is to be reported.
    pub fn is_reportable(&self, mark: u64) -> bool {
        !self.has_edges() || self.reported.load(Relaxed) != mark
    }

    pub fn has_reported(&self, mark: u64) {
        self.reported.store(mark, Relaxed);
    }

    /// What is there is an edge again.
    pub fn report_again(&self) {
        self.reported.store(u64::MAX, Relaxed);
    }

    /// As epoll_ctl, without the kernel. `None` for what the kernel has to do: it reports edges anew,
    /// and at once whether the other end has closed the connection (EPOLLRDHUP).
    pub fn change(
        &self,
        operation: c_int,
        event: Option<epoll_event>,
    ) -> Option<Result<(), Errno>> {
        if self.wants_more() || event.is_some_and(|event| has_more(event.events)) {
            return None;
        }
        let is_out = self.is_out.load(Relaxed) != 0;
        Some(match (operation, event) {
            (libc::EPOLL_CTL_ADD, Some(_)) if !is_out => Err(Errno(libc::EEXIST)),
            (libc::EPOLL_CTL_MOD | libc::EPOLL_CTL_DEL, _) if is_out => Err(Errno(libc::ENOENT)),
            (libc::EPOLL_CTL_ADD | libc::EPOLL_CTL_MOD, Some(event)) => {
                self.want(event);
                Ok(())
            }
            (libc::EPOLL_CTL_DEL, _) => {
                self.is_out.store(1, Relaxed);
                Ok(())
            }
            _ => return None,
        })
    }

    /// Gives the kernel what is different from what it has.
    pub fn update_kernel(&self, set: c_int) {
        let Some(slot) = self.enter() else { return };
        let fd = self.fd.load(Relaxed) as c_int;
        let (events, data) = (self.events.load(Relaxed), self.data.load(Relaxed));
        let known = (self.kernel_events.load(Relaxed), self.kernel_data.load(Relaxed));
        if self.is_out.load(Relaxed) != 0 {
            self.clear();
            slot.leaves_set();
            kernel::epoll(set, libc::EPOLL_CTL_DEL, fd, 0, 0);
            kernel::epoll(set, libc::EPOLL_CTL_DEL, slot.own_eventfd(), 0, 0);
        } else if known != (events, data) {
            kernel::epoll(set, libc::EPOLL_CTL_MOD, fd, events, data);
            let eventfd = eventfd_events(events);
            if known.1 != data || eventfd_events(known.0) != eventfd {
                kernel::epoll(set, libc::EPOLL_CTL_MOD, slot.own_eventfd(), eventfd, data);
            }
            self.kernel_events.store(events, Relaxed);
            self.kernel_data.store(data, Relaxed);
        }
        slot.leave();
    }
}

fn has_more(events: u32) -> bool {
    events & !(INPUT | OUTPUT) != 0
}

/// What the eventfd is to report for a socket.
pub fn eventfd_events(events: u32) -> u32 {
    let input = if events & INPUT != 0 { libc::EPOLLIN as u32 } else { 0 };
    input | events & ONCE | if has_edges(events) { EDGES } else { 0 }
}

/// One event alone is no edge and no level.
pub fn has_edges(events: u32) -> bool {
    events & (EDGES | ONCE) == EDGES
}
