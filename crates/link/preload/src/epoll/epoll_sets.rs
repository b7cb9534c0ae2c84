// SPDX-License-Identifier: Apache-2.0
//! Epoll sets. A linked connection has its eventfd in the same sets, with the same data: who waits
//! there is woken by both, and the program cannot tell them apart.

use crate::epoll::epoll_member::{eventfd_events, has_edges};
use crate::epoll::epoll_members::{self, MOST_SETS};
use crate::epoll::one_shot_state::ONCE;
use crate::links::slots::{self, Slot};
use crate::state::connection::{Connection, Registration, Stage};
use crate::stream::eventfds;
use crate::{kernel, state};
use core::ffi::c_int;
use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use core::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, AtomicUsize};
use libc::epoll_event;
use tare_link_segment::Reason;

/// Descriptors that can be known as a set's.
const MOST: usize = 1 << 17;

struct Set {
    /// What no other set has, 0 if there is none.
    name: AtomicU64,
    /// 1 + one of its descriptors, and the number of them.
    fd: AtomicU32,
    count: AtomicU32,
}

impl Set {
    const fn new() -> Self {
        Self { name: AtomicU64::new(0), fd: AtomicU32::new(0), count: AtomicU32::new(0) }
    }

    fn descriptor(&self) -> Option<c_int> {
        self.fd.load(Acquire).checked_sub(1).map(|fd| fd as c_int)
    }
}

static SETS: [Set; MOST_SETS] = [const { Set::new() }; MOST_SETS];
/// 1 + the place of the set that each descriptor is of, 0 for none.
static SET_OF: [AtomicU8; MOST] = [const { AtomicU8::new(0) }; MOST];
static NAMES: AtomicU64 = AtomicU64::new(1);
/// No set, and no descriptor of one, is beyond.
static HIGHEST: AtomicUsize = AtomicUsize::new(0);
static HIGHEST_DESCRIPTOR: AtomicUsize = AtomicUsize::new(0);

/// What a set of two descriptors cannot do as one does: for one thread alone.
const REFUSED: u32 = libc::EPOLLEXCLUSIVE as u32;

pub fn created(fd: c_int) {
    if fd >= 0 && state::statistics().is_some() {
        let _ = add(fd);
    }
}

/// A new set, which gets a name; `None` if there is no place for it.
fn add(fd: c_int) -> Option<u64> {
    closed(fd);
    let set_of = SET_OF.get(fd as usize)?;
    let name = NAMES.fetch_add(1, Relaxed);
    let take = |set: &Set| set.name.compare_exchange(0, name, AcqRel, Relaxed).is_ok();
    let number = SETS.iter().position(take)?;
    epoll_members::of(number).clear(fd);
    SETS[number].fd.store(fd as u32 + 1, Release);
    SETS[number].count.store(1, Relaxed);
    HIGHEST.fetch_max(number + 1, Release);
    HIGHEST_DESCRIPTOR.fetch_max(fd as usize, Release);
    set_of.store(number as u8 + 1, Release);
    Some(name)
}

/// A descriptor has a copy, which may be a set's. Returns the name of the set if the copy cannot be
/// known: nothing of that set is, from now on.
pub fn duplicated(fd: c_int, copy: c_int) -> Option<u64> {
    let number = number(fd).filter(|_| fd != copy)?;
    closed(copy);
    let set = &SETS[number];
    match SET_OF.get(copy as usize) {
        Some(set_of) => {
            set.count.fetch_add(1, Relaxed);
            HIGHEST_DESCRIPTOR.fetch_max(copy as usize, Release);
            set_of.store(number as u8 + 1, Release);
            None
        }
        None => Some(set.name.load(Relaxed)),
    }
}

/// A descriptor is closed, which may be a set.
pub fn closed(fd: c_int) {
    closed_range(fd as u32, fd as u32);
}

/// All descriptors from `first` to `last`, both included, are closed.
pub fn closed_range(first: u32, last: u32) {
    let last = (last as usize).min(HIGHEST_DESCRIPTOR.load(Acquire));
    let known = SET_OF.get(first as usize..=last).unwrap_or_default();
    for (fd, set_of) in (first..).zip(known) {
        if set_of.load(Relaxed) != 0
            && let Some(number) = set_of.swap(0, AcqRel).checked_sub(1)
        {
            let number = usize::from(number);
            let set = &SETS[number];
            if set.count.fetch_sub(1, AcqRel) == 1 {
                set.fd.store(0, Release);
                set.name.store(0, Release);
            } else if set.descriptor() == Some(fd as c_int)
                && let Some(other) = copies(number).next()
            {
                set.fd.store(other as u32 + 1, Release);
                epoll_members::of(number).use_descriptor(other);
            }
        }
    }
}

/// The known descriptors of the set with this number.
fn copies(number: usize) -> impl Iterator<Item = c_int> {
    let all = SET_OF.iter().take(HIGHEST_DESCRIPTOR.load(Acquire) + 1).enumerate();
    let is_of = move |place: &AtomicU8| usize::from(place.load(Acquire)) == number + 1;
    all.filter(move |(_, place)| is_of(place)).map(|(fd, _)| fd as c_int)
}

/// Whether a connection is in the set with this name.
pub fn is_in(connection: &Connection, name: u64) -> bool {
    connection.sets.iter().any(|place| place.set.load(Relaxed) == name)
}

/// The set with this name is not known any more.
pub fn forget_set(name: u64) {
    if let Some(number) = all().iter().position(|set| set.name.load(Acquire) == name) {
        copies(number).for_each(closed);
    }
}

fn all() -> &'static [Set] {
    &SETS[..HIGHEST.load(Acquire).min(MOST_SETS)]
}

/// The name of a set.
pub fn find(fd: c_int) -> Option<u64> {
    number(fd).map(|number| SETS[number].name.load(Acquire))
}

/// The place of a set.
pub fn number(fd: c_int) -> Option<usize> {
    let set_of = SET_OF.get(usize::try_from(fd).ok()?)?.load(Acquire);
    set_of.checked_sub(1).map(usize::from)
}

/// Something else than epoll_wait waits for a set, or a thread by another descriptor.
pub fn is_waited_for(fd: c_int) {
    if let Some(number) = number(fd) {
        epoll_members::of(number).keep_armed();
    }
}

/// The place of the set with this name.
pub fn place_of(name: u64) -> Option<usize> {
    descriptor(name).and_then(number)
}

/// A descriptor of the set with this name.
fn descriptor(name: u64) -> Option<c_int> {
    all().iter().find(|set| name != 0 && set.name.load(Acquire) == name)?.descriptor()
}

/// The numbers of all sets.
pub fn numbers() -> core::ops::Range<usize> {
    0..all().len()
}

/// Tells the kernel all that was postponed.
pub fn update_kernel() {
    for number in numbers() {
        epoll_members::of(number).update_kernel();
    }
}

/// Where a connection has its descriptor `fd` in the set with this name.
pub fn registration(connection: &Connection, set: u64, fd: c_int) -> Option<&Registration> {
    connection
        .sets
        .iter()
        .find(|place| place.set.load(Relaxed) == set && place.fd.load(Relaxed) == fd as u32)
}

/// Notes that a connection is in a set; an error if the library cannot do what the set is to do.
pub fn record(
    connection: &Connection,
    set: c_int,
    operation: c_int,
    fd: c_int,
    event: epoll_event,
) -> Result<(), Reason> {
    let value = find(set).ok_or(Reason::EpollSet)?;
    let cannot_tell = || {
        event.events & ONCE != 0
            && connection.stage() == Stage::Linked
            && !number(set).is_some_and(|set| {
                epoll_members::of(set).knows_one_shot(connection.slot.load(Relaxed))
            })
    };
    if event.events & REFUSED != 0 || cannot_tell() {
        return Err(Reason::EpollFlags);
    }
    let known = registration(connection, value, fd);
    let is_twice = connection
        .sets
        .iter()
        .any(|place| place.set.load(Relaxed) == value && place.fd.load(Relaxed) != fd as u32);
    let free =
        || connection.sets.iter().find(|place| descriptor(place.set.load(Relaxed)).is_none());
    // The eventfd stays as it is if only what the kernel reports changes. An edge is reported anew.
    let is_same = operation == libc::EPOLL_CTL_MOD
        && event.events & (libc::EPOLLET as u32 | ONCE) == 0
        && known.is_some_and(|place| {
            place.data.load(Relaxed) == event.u64
                && eventfd_events(place.events.load(Relaxed)) == eventfd_events(event.events)
        });
    let place = known.or_else(free).filter(|_| !is_twice).ok_or(Reason::EpollSet)?;
    place.fd.store(fd as u32, Relaxed);
    place.events.store(event.events, Relaxed);
    place.data.store(event.u64, Relaxed);
    place.set.store(value, Relaxed);
    if is_same {
        if connection.stage() == Stage::Linked
            && let Some(number) = number(set)
        {
            let link = connection.slot.load(Relaxed);
            epoll_members::of(number).put(link, fd, event);
        }
        return Ok(());
    }
    with_eventfd(connection, |slot, place| {
        let is_new = operation == libc::EPOLL_CTL_ADD;
        let operation = if is_new { libc::EPOLL_CTL_ADD } else { libc::EPOLL_CTL_MOD };
        join(slot, place, set, is_new, (fd, event));
        kernel::epoll(set, operation, slot.own_eventfd(), eventfd_events(event.events), event.u64);
    });
    Ok(())
}

/// For a connection that is linked.
pub fn with_eventfd(connection: &Connection, what: impl FnOnce(&Slot, u32)) {
    if connection.stage() == Stage::Linked
        && let Some(slot) = slots::enter(connection.slot.load(Relaxed))
    {
        what(slot, connection.slot.load(Relaxed));
        eventfds::settle_for_sets(slot);
        slot.leave();
    }
}

/// A link is in a set. It begins with an armed doorbell; the waiter of the set may change that.
fn join(slot: &Slot, place: u32, set: c_int, is_new: bool, (fd, event): (c_int, epoll_event)) {
    slot.watch.store(eventfds::ARMED, Relaxed);
    if is_new {
        slot.sets.fetch_add(1, Relaxed);
    }
    if has_edges(event.events) {
        slot.has_edges.store(1, Relaxed);
    }
    if let Some(number) = number(set) {
        epoll_members::of(number).put(place, fd, event);
    }
}

/// The connection has just been linked.
pub fn linked(connection: &Connection, slot: &Slot, place: u32) {
    each(connection, |set, registration| {
        let events = registration.events.load(Relaxed);
        let event = epoll_event { events, u64: registration.data.load(Relaxed) };
        let fd = registration.fd.load(Relaxed) as c_int;
        join(slot, place, set, true, (fd, event));
    });
}

/// The connection is about to be linked.
pub fn register(connection: &Connection, eventfd: c_int) {
    each(connection, |set, place| {
        let events = eventfd_events(place.events.load(Relaxed));
        // The program may have got its event: the next one is reported when it asks for it.
        let events = if events & ONCE == 0 { events } else { ONCE };
        kernel::epoll(set, libc::EPOLL_CTL_ADD, eventfd, events, place.data.load(Relaxed));
    });
}

/// The program has ended what it sends: sets report edges of what there is to read anew.
pub fn report_again(fd: c_int) {
    let Some((connection, _)) = state::tracked(fd) else { return };
    with_eventfd(connection, |slot, place| {
        if slot.has_edges.load(Relaxed) != 0 {
            each(connection, |set, _| {
                number(set)
                    .into_iter()
                    .for_each(|number| epoll_members::of(number).report_again(place));
            });
        }
    });
}

/// A link ends in this process: its sets do not look at it any more.
pub fn forget(connection: &Connection) {
    let place = connection.slot.load(Relaxed);
    each(connection, |set, _| {
        number(set).into_iter().for_each(|number| epoll_members::of(number).remove(place));
    });
}

/// The eventfd leaves its sets: the other end has it too, so closing it is not enough.
pub fn withdraw(connection: &Connection, eventfd: c_int) {
    each(connection, |set, _| {
        kernel::epoll(set, libc::EPOLL_CTL_DEL, eventfd, 0, 0);
    });
}

fn each(connection: &Connection, what: impl Fn(c_int, &Registration)) {
    for place in &connection.sets {
        if let Some(set) = descriptor(place.set.load(Relaxed)) {
            what(set, place);
        }
    }
}

/// Makes one event of two with the same data: a socket's and its eventfd's. Returns their number.
///
/// # Safety
/// There are `count` events.
pub unsafe fn merge(events: *mut epoll_event, count: c_int) -> c_int {
    let mut kept = 0usize;
    for number in 0..count.max(0) as usize {
        // SAFETY: below `count`.
        let event = unsafe { events.add(number).read_unaligned() };
        let same = (0..kept).rev().find(|place| {
            // SAFETY: below `count`.
            let other = unsafe { events.add(*place).read_unaligned() };
            other.u64 == event.u64
        });
        let (place, merged) = match same {
            None => (kept, event),
            Some(place) => {
                // SAFETY: below `count`.
                let other = unsafe { events.add(place).read_unaligned() };
                (place, epoll_event { events: other.events | event.events, u64: event.u64 })
            }
        };
        // SAFETY: below `count`.
        unsafe { events.add(place).write_unaligned(merged) };
        kept += usize::from(same.is_none());
    }
    kept as c_int
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn set_is_known_by_all_of_its_descriptors_until_the_last_is_closed() {
        let name = add(7).unwrap();
        let number = number(7).unwrap();
        (8..100).for_each(|copy| assert_eq!(duplicated(copy - 1, copy), None));
        closed_range(0, 50);
        assert_eq!((find(50), find(51), descriptor(name)), (None, Some(name), Some(51)));
        assert_eq!(duplicated(99, MOST as c_int), Some(name), "that cannot be known");
        (52..99).for_each(closed);
        assert_eq!((find(51), find(99)), (Some(name), Some(name)));
        forget_set(name);
        assert_eq!((find(51), find(99), descriptor(name)), (None, None, None));
        assert_eq!(SETS[number].count.load(Relaxed), 0);
    }

    #[test]
    fn events_of_one_socket_become_one() {
        let of = |events: i32, data| epoll_event { events: events as u32, u64: data };
        let mut events = [
            of(libc::EPOLLIN, 7),
            of(libc::EPOLLOUT, 8),
            of(libc::EPOLLOUT, 7),
            of(libc::EPOLLIN, 9),
        ];
        // SAFETY: as many as there are.
        assert_eq!(unsafe { merge(events.as_mut_ptr(), 4) }, 3);
        let all = events[..3].iter().map(|event| ({ event.events } as i32, { event.u64 }));
        let expected =
            [(libc::EPOLLIN | libc::EPOLLOUT, 7), (libc::EPOLLOUT, 8), (libc::EPOLLIN, 9)];
        assert!(all.eq(expected));
    }
}
