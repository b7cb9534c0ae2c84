// SPDX-License-Identifier: Apache-2.0
//! epoll_wait: of the links in a set the calling thread reports by itself, of all else the kernel.

use crate::calls::deadline::Deadline;
use crate::epoll::epoll_members::{self, Members};
use crate::epoll::{epoll_sets, epoll_waiter, one_shot};
use crate::lifecycle::service_thread;
use crate::links::busy_wait::{ticks, ticks_per_microsecond};
use crate::links::slots;
use crate::state;
use crate::stream::{buffers, downgrade};
use core::ffi::c_int;
use core::ptr;
use core::sync::atomic::AtomicU64;
use core::sync::atomic::Ordering::Relaxed;
use libc::{epoll_event, timespec};
use tare_interpose::real;

/// Serves links whose other end waits, if that was not done for some milliseconds; of many links more
/// seldom, so that it takes at most 2 % of the time.
pub fn serve_all() {
    const OFTEN: u64 = 5000;
    const SHARE: u64 = 50;
    /// When it is due.
    static DUE: AtomicU64 = AtomicU64::new(0);
    let (now, due) = (ticks(), DUE.load(Relaxed));
    let next = now + OFTEN * ticks_per_microsecond();
    if now >= due && DUE.compare_exchange(due, next, Relaxed, Relaxed).is_ok() {
        slots::each(downgrade::serve);
        let took = ticks().wrapping_sub(now);
        DUE.store(next.max(now + SHARE * took), Relaxed);
    }
}

/// How long the kernel's call waits: not at all, as the program wants, or this number of nanoseconds.
#[derive(Clone, Copy)]
pub enum Time {
    None,
    Given,
    Left(u64),
}

impl Time {
    pub fn timespec(self) -> Option<timespec> {
        const SECOND: u64 = 1_000_000_000;
        let of = |time: u64| timespec {
            tv_sec: (time / SECOND) as i64,
            tv_nsec: (time % SECOND) as i64,
        };
        match self {
            Self::None => Some(of(0)),
            Self::Given => None,
            Self::Left(left) => Some(of(left)),
        }
    }

    /// Of `timeout` milliseconds.
    pub fn milliseconds(self, timeout: c_int) -> c_int {
        match self {
            Self::None => 0,
            Self::Given => timeout,
            Self::Left(left) => c_int::try_from(left.div_ceil(1_000_000)).unwrap_or(c_int::MAX),
        }
    }
}

/// The kernel's call, into this number of events.
type Call<'a> = &'a dyn Fn(*mut epoll_event, c_int, Time) -> c_int;

/// A call of epoll_wait.
pub struct Wait<'a> {
    /// It does not wait.
    pub returns: bool,
    /// Until when it waits; `None` if the kernel should judge it.
    pub deadline: &'a dyn Fn() -> Option<Deadline>,
    pub call: Call<'a>,
}

/// As epoll_pwait2, which is `call`, with this time.
pub fn until(
    set: c_int,
    events: *mut epoll_event,
    most: c_int,
    timeout: *const timespec,
    call: &dyn Fn(*mut epoll_event, c_int, *const timespec) -> c_int,
) -> c_int {
    let of = Wait {
        returns: false,
        deadline: &|| match buffers::read_value(timeout) {
            None if !timeout.is_null() => None,
            time => Deadline::after(time.as_ref().map_or(ptr::null(), ptr::from_ref)),
        },
        call: &|events, most, time| {
            let some = time.timespec();
            call(events, most, some.as_ref().map_or(timeout, ptr::from_ref))
        },
    };
    wait(set, events, most, &of)
}

/// As epoll_wait.
pub fn wait(set: c_int, events: *mut epoll_event, most: c_int, of: &Wait) -> c_int {
    if most <= 0 || !slots::any() || state::is_off() {
        let count = (of.call)(events, most, Time::Given);
        // A link that was made meanwhile may have an event which another thread has reported.
        let members = epoll_sets::number(set).filter(|_| count > 0 && one_shot::is_used());
        let kept =
            members.map_or(count, |set| keep_real_events(epoll_members::of(set), events, count));
        if kept != 0 || count <= 0 || of.returns {
            return kept;
        }
    }
    service_thread::ensure();
    serve_all();
    let Some(members) = epoll_sets::number(set).map(epoll_members::of) else {
        let count = (of.call)(events, most, Time::Given);
        serve_all();
        return count;
    };
    // Asked for before the first sleep.
    let mut end: Option<Deadline> = None;
    loop {
        let mut sleeps = false;
        let mut time = || {
            sleeps = true;
            match end {
                None if of.returns => Time::None,
                None => {
                    end = (of.deadline)();
                    Time::Given
                }
                Some(end) if end.is_never() => Time::Given,
                Some(end) => Time::Left(end.rest()),
            }
        };
        let (count, kept) = if members.has_sole_waiter(state::thread_number()) {
            wait_alone(members, (events, most), of, time)
        } else {
            let count = (of.call)(events, most, time());
            serve_all();
            let kept = keep_real_events(members, events, count);
            if count > 0 {
                members.renew_edges();
            }
            (count, kept)
        };
        if kept > 0 {
            // SAFETY: this number of entries was written.
            return unsafe { epoll_sets::merge(events, kept) };
        }
        let is_late = || end.is_none_or(|end| !end.is_never() && end.rest() == 0);
        if count < 0 || of.returns || sleeps && (count == 0 || is_late()) {
            return kept;
        }
    }
}

/// Takes out the events of doorbells that were rung for nothing. Returns how many are left.
fn keep_real_events(members: &Members, events: *mut epoll_event, count: c_int) -> c_int {
    let mut kept = 0;
    for number in 0..count.max(0) as usize {
        // SAFETY: the kernel has written this number of entries.
        let event = unsafe { events.add(number).read_unaligned() };
        if let Some(event) =
            members.filter_one_shot(event).filter(|event| !members.is_spurious(*event))
        {
            // SAFETY: as above, and not behind it.
            unsafe { events.add(kept).write_unaligned(event) };
            kept += 1;
        }
    }
    if count > 0 { kept as c_int } else { count }
}

/// Waits as the only thread of a set. Returns the number of events, and how many of them are kept.
fn wait_alone(
    members: &Members,
    (events, most): (*mut epoll_event, c_int),
    of: &Wait,
    time: impl FnOnce() -> Time,
) -> (c_int, c_int) {
    let call = |events, most, time| members.call_kernel(|| (of.call)(events, most, time));
    let mut sleepers = epoll_waiter::NO_SLEEPERS;
    if members.must_call_kernel_first() {
        members.clear_eventfds();
        let errno = real::errno();
        let count = call(events, most, Time::None);
        let kept = keep_real_events(members, events, count);
        members.kernel_was_called();
        members.renew_edges();
        if kept != 0 {
            return (count, kept);
        }
        real::set_errno(errno);
    }
    for round in 0.. {
        // What the program's address is worth, the kernel judges.
        let Ok((found, has_more)) = members.collect(events, most) else {
            let count = call(events, most, Time::Given);
            return (count, count);
        };
        if found > 0 && (found == most || !has_more && members.skip_kernel()) {
            return (found, found);
        }
        if found > 0 || has_more {
            members.clear_eventfds();
            let errno = real::errno();
            let rest = events.wrapping_add(found as usize);
            let more = keep_real_events(members, rest, call(rest, most - found, Time::None));
            members.kernel_was_called();
            members.renew_edges();
            if found + more.max(0) > 0 {
                real::set_errno(errno);
                return (found + more.max(0), found + more.max(0));
            }
            if more < 0 {
                return (more, more);
            }
        }
        if !of.returns && round == 0 && members.spin() {
            continue;
        }
        let is_ready = members.begin_sleep(&mut sleepers);
        if is_ready && round < 3 {
            members.end_sleep(&mut sleepers);
            continue;
        }
        let count = call(events, most, if is_ready { Time::None } else { time() });
        members.end_sleep(&mut sleepers);
        members.kernel_was_called();
        let kept = keep_real_events(members, events, count);
        members.renew_edges();
        serve_all();
        return (count, kept);
    }
    (0, 0)
}
