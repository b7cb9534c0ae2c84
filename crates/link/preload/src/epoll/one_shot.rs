// SPDX-License-Identifier: Apache-2.0
//! EPOLLONESHOT. A link has two descriptors in a set, its socket and its eventfd, and the kernel would
//! report one event of each. So the library reports the first one, and drops what comes before the
//! program asks for the next one: it can tell by the data of the event whose it is, as long as
//! nothing else in the set has the same. Where something has, the connection is TCP's.

use crate::epoll::epoll_member::{Member, eventfd_events};
use crate::epoll::epoll_members::{self, Members};
use crate::epoll::epoll_sets;
use crate::epoll::one_shot_state::ONCE;
use crate::kernel;
use crate::links::slots::Slot;
use crate::state::DESCRIPTORS;
use crate::state::connection::{Connection, Registration, Stage};
use crate::stream::{downgrade, eventfds};
use core::ffi::c_int;
use core::ptr;
use core::sync::atomic::AtomicBool;
use core::sync::atomic::Ordering::Relaxed;
use libc::epoll_event;

/// There was a link with EPOLLONESHOT.
static IS_USED: AtomicBool = AtomicBool::new(false);

/// Before epoll_ctl of a link. If its events cannot be told from others, `record` refuses it.
pub fn begin(connection: &Connection, set: c_int, operation: c_int, fd: c_int, event: epoll_event) {
    let is_new = operation == libc::EPOLL_CTL_ADD;
    let known = epoll_sets::find(set).zip(epoll_sets::number(set));
    let known = known
        .filter(|(name, _)| is_new || epoll_sets::registration(connection, *name, fd).is_some());
    let Some((name, number)) = known.filter(|_| connection.stage() == Stage::Linked) else {
        return;
    };
    let (members, place) = (epoll_members::of(number), connection.slot.load(Relaxed));
    if !members.other_data.may_have(event.u64)
        && !members.used().iter().any(|other| !other.is_of(place) && other.has_data(event.u64))
        && !has_other(connection, name, event.u64)
    {
        IS_USED.store(true, Relaxed);
        members.keep_armed();
        if let Some(member) = members.put(place, fd, event) {
            member.one_shot.arm();
        }
    }
}

/// The kernel has refused what `begin` was called for.
pub fn cancel(connection: &Connection, set: c_int, operation: c_int) {
    if operation == libc::EPOLL_CTL_ADD && connection.stage() == Stage::Linked {
        let number = epoll_sets::number(set);
        let place = connection.slot.load(Relaxed);
        number.into_iter().for_each(|number| epoll_members::of(number).remove(place));
    }
}

/// Something else is in a set with this data: the place of a link whose events it could be.
pub fn add_other_data(set: c_int, event: epoll_event) -> Option<u32> {
    let members = epoll_members::of(epoll_sets::number(set)?);
    members.other_data.add(event.u64);
    let of = |member: &&Member| member.is_one_shot() && member.has_data(event.u64);
    members.used().iter().find(of).and_then(Member::place)
}

/// A connection is in a set with this data: the place of another link whose events it could be.
pub fn conflicting_link(connection: &Connection, set: c_int, event: epoll_event) -> Option<u32> {
    let members = epoll_members::of(epoll_sets::number(set)?);
    let own = connection.slot.load(Relaxed);
    let is_own = |place: &u32| connection.stage() == Stage::Linked && *place == own;
    let of = |member: &&Member| member.is_one_shot() && member.has_data(event.u64);
    members.used().iter().filter(of).filter_map(Member::place).find(|place| !is_own(place))
}

/// Whether another connection is in the set with this name, with this data.
fn has_other(connection: &Connection, name: u64, data: u64) -> bool {
    let is_of =
        |place: &Registration| place.set.load(Relaxed) == name && place.data.load(Relaxed) == data;
    let other = DESCRIPTORS.find(|_, entry| {
        let other = DESCRIPTORS.connection(entry);
        other.is_some_and(|other| !ptr::eq(other, connection) && other.sets.iter().any(is_of))
    });
    other.is_some()
}

/// Whether a connection is in a set for one event.
pub fn is_one_shot(connection: &Connection) -> bool {
    let is_one_shot = |place: &Registration| {
        epoll_sets::place_of(place.set.load(Relaxed)).is_some()
            && place.events.load(Relaxed) & ONCE != 0
    };
    connection.sets.iter().any(is_one_shot)
}

/// Whether what is known of a link in all of its sets suffices to receive through its ring.
fn is_known(connection: &Connection) -> bool {
    let place = connection.slot.load(Relaxed);
    connection.sets.iter().all(|registration| {
        let name = registration.set.load(Relaxed);
        registration.events.load(Relaxed) & ONCE == 0
            || epoll_sets::place_of(name)
                .is_none_or(|set| epoll_members::of(set).knows_one_shot(place))
    })
}

/// The other end may send through the ring as soon as the events are known: when the link was made,
/// the program may just have got one.
pub fn receive_if_known(connection: &Connection, slot: &Slot) {
    if !slot.mapping().incoming.is_ready() && is_known(connection) {
        slot.mapping().incoming.be_ready();
    }
}

/// Before a link is left: what the kernel reports of its socket is reported from now on.
pub fn leaving(slot: &Slot) {
    if is_used() {
        for members in epoll_sets::numbers().map(epoll_members::of) {
            members.used().iter().filter(|member| member.is_of(slot.place())).for_each(|member| {
                if member.is_one_shot() && member.one_shot.is_reported() {
                    members.update_kernel_events(member, slot, |wanted| {
                        if member.one_shot.is_reported() { ONCE } else { wanted }
                    });
                }
            });
        }
    }
}

/// Whether connections go back to TCP before a fork: what one process reports, the other one does not
/// know.
pub fn is_used() -> bool {
    IS_USED.load(Relaxed)
}

impl Members {
    /// An event of a set, as the program gets it; `None` if it does not.
    pub fn filter_one_shot(&self, event: epoll_event) -> Option<epoll_event> {
        if !is_used() {
            return Some(event);
        }
        let of = |member: &&Member| member.is_one_shot() && member.has_data(event.u64);
        let Some(member) = self.used().iter().find(of) else { return Some(event) };
        let Some(slot) = member.enter() else { return Some(event) };
        let events = if slot.mapping().incoming.is_left() || !member.one_shot.is_known() {
            // The kernel's socket alone has events.
            Some(event.events)
        } else {
            self.take_event(member, slot)
        };
        slot.leave();
        events.map(|events| epoll_event { events, u64: event.u64 })
    }

    /// All that there is to report, for the one who reports it.
    fn take_event(&self, member: &Member, slot: &Slot) -> Option<u32> {
        if downgrade::is_due(slot) {
            downgrade::serve(slot);
        }
        let wanted = member.wanted();
        let fd = slot.any_descriptor()?;
        let of_socket = u32::from(kernel::events(fd, wanted as i16) as u16);
        let of_ring =
            if member.input() != 0 && eventfds::is_readable(slot) { member.input() } else { 0 };
        let events = of_socket | of_ring;
        if events != 0 {
            return member.one_shot.take().then_some(events);
        }
        // It was rung for nothing, or another thread was faster.
        self.update_kernel_events(member, slot, |wanted| wanted);
        None
    }

    /// Changes the events that the kernel reports, of those that the program wants.
    fn update_kernel_events(&self, member: &Member, slot: &Slot, of: impl Fn(u32) -> u32) {
        let set = self.set.load(Relaxed) as c_int;
        loop {
            let (events, data) = (of(member.wanted()), member.data());
            kernel::epoll(set, libc::EPOLL_CTL_MOD, member.descriptor(), events, data);
            kernel::epoll(
                set,
                libc::EPOLL_CTL_MOD,
                slot.own_eventfd(),
                eventfd_events(events),
                data,
            );
            // The program may have changed it meanwhile.
            if (events, data) == (of(member.wanted()), member.data()) {
                return;
            }
        }
    }
}
