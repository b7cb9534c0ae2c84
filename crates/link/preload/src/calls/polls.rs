// SPDX-License-Identifier: Apache-2.0
//! Waits for several descriptors: poll with the eventfds of linked connections besides.

use crate::calls::deadline::Deadline;
use crate::epoll::epoll_sets;
use crate::lifecycle::{closing, service_thread};
use crate::links::slots::{self, Slot};
use crate::state;
use crate::state::connection::{Connection, Stage};
use crate::stream::{downgrade, eventfds};
use core::ffi::c_int;
use core::sync::atomic::Ordering::Relaxed;
use libc::{nfds_t, pollfd, sigset_t, timespec};
use tare_interpose::real;
use tare_link_segment::Reason;

/// Descriptors of one wait; connections in longer ones stay TCP.
pub const MOST: usize = 256;
const INPUT: i16 = libc::POLLIN | libc::POLLRDNORM;
const OUTPUT: i16 = libc::POLLOUT | libc::POLLWRNORM;
/// What the wait has to do about a descriptor.
#[derive(Clone, Copy)]
enum Role {
    Other,
    /// The connection is kept TCP during the wait.
    Kept(&'static Connection),
    Linked(&'static Slot),
}

/// As ppoll; `None` if nothing of it concerns the library.
pub fn poll(
    places: *mut pollfd,
    count: nfds_t,
    deadline: impl FnOnce() -> Option<Deadline>,
    mask: *const sigset_t,
) -> Option<c_int> {
    // What lies there is no memory of the program's.
    const LOWEST: usize = 4096;
    let count = usize::try_from(count).ok()?;
    if count == 0 || count > 1 << 20 || places.addr() < LOWEST || state::statistics().is_none() {
        return None;
    }
    // SAFETY: the program's own array, which the kernel would write.
    let places = unsafe { core::slice::from_raw_parts_mut(places, count) };
    if count > MOST {
        for place in places {
            keep_for_good(place.fd);
        }
        return None;
    }
    let mut roles = [Role::Other; MOST];
    let mut concerns = false;
    for (place, role) in places.iter().zip(&mut roles) {
        *role = role_of(place.fd);
        concerns |= !matches!(role, Role::Other);
    }
    if !concerns {
        return None;
    }
    let roles = &roles[..count];
    let result = deadline().map(|deadline| wait(places, roles, deadline, mask));
    end(roles);
    result
}

/// A connection in a wait that is too long stays TCP.
pub fn keep_for_good(fd: c_int) {
    if let Some((connection, _)) = state::tracked(fd) {
        closing::give_up(fd, connection, Reason::LongPoll);
    }
}

fn role_of(fd: c_int) -> Role {
    if state::is_off() {
        return Role::Other;
    }
    let Some((connection, _)) = state::tracked(fd) else {
        epoll_sets::is_waited_for(fd);
        return Role::Other;
    };
    if connection.keep() {
        return Role::Kept(connection);
    }
    if connection.stage() != Stage::Linked {
        return Role::Other;
    }
    service_thread::ensure();
    slots::enter(connection.slot.load(Relaxed)).map_or(Role::Other, Role::Linked)
}

fn end(roles: &[Role]) {
    for role in roles {
        match role {
            Role::Other => {}
            Role::Kept(connection) => connection.end(),
            Role::Linked(slot) => slot.leave(),
        }
    }
}

fn wait(places: &mut [pollfd], roles: &[Role], deadline: Deadline, mask: *const sigset_t) -> c_int {
    const NONE: pollfd = pollfd { fd: -1, events: 0, revents: 0 };
    let mut all = [NONE; 2 * MOST];
    let count = places.len();
    loop {
        let mut length = count;
        let mut is_ready = false;
        all[..count].copy_from_slice(places);
        each_link(roles, downgrade::serve);
        if deadline.rest() > 0 || deadline.is_never() {
            spin(places, roles);
        }
        for (place, role) in places.iter().zip(roles) {
            is_ready |= output(place, role) != 0;
            if let Some(slot) = input(place, role) {
                is_ready |= eventfds::begin_sleep(slot);
                all[length] = pollfd { fd: slot.own_eventfd(), events: libc::POLLIN, revents: 0 };
                length += 1;
            }
        }
        let now = timespec { tv_sec: 0, tv_nsec: 0 };
        let left = if is_ready { Some(now) } else { deadline.left() };
        let time = left.as_ref().map_or(core::ptr::null(), core::ptr::from_ref);
        let waits = left.is_none_or(|left| left.tv_sec != 0 || left.tv_nsec != 0);
        if waits {
            each_link(roles, Slot::begin_wait);
        }
        // SAFETY: the array has this number of places.
        let result = unsafe { real::ppoll(all.as_mut_ptr(), length as nfds_t, time, mask) };
        if waits {
            each_link(roles, Slot::end_wait);
        }
        for (place, role) in places.iter().zip(roles) {
            if let Some(slot) = input(place, role) {
                eventfds::end_sleep(slot);
            }
        }
        if result < 0 {
            return result;
        }
        let mut ready = 0;
        for ((place, role), polled) in places.iter_mut().zip(roles).zip(&all) {
            place.revents = polled.revents | output(place, role);
            if input(place, role).is_some_and(eventfds::has_bytes) {
                place.revents |= place.events & INPUT;
            }
            ready += c_int::from(place.revents != 0);
        }
        // Woken by an eventfd for nothing: on with the rest of the time.
        if ready > 0 || result == 0 && !is_ready {
            return ready;
        }
    }
}

/// A stream that the program has ended can always be written, though TCP has not all of it yet: that
/// fails at once.
fn output(place: &pollfd, role: &Role) -> i16 {
    match role {
        Role::Linked(slot) if slot.ends.load(Relaxed) == slots::ENDS => place.events & OUTPUT,
        _ => 0,
    }
}

fn each_link(roles: &[Role], what: impl Fn(&Slot)) {
    for role in roles {
        if let Role::Linked(slot) = role {
            what(slot);
        }
    }
}

/// The link whose bytes are waited for.
fn input(place: &pollfd, role: &Role) -> Option<&'static Slot> {
    match role {
        Role::Linked(slot) if place.events & INPUT != 0 => Some(slot),
        _ => None,
    }
}

/// Waits some microseconds for bytes of any of the links.
fn spin(places: &[pollfd], roles: &[Role]) {
    let inputs = || places.iter().zip(roles).filter_map(|(place, role)| input(place, role));
    if let Some(first) = inputs().next() {
        let mapping = first.mapping();
        let ready = || inputs().any(|slot| slot.mapping().incoming.has_updates());
        first.bytes_spin.wait(mapping.outgoing, mapping.incoming, &ready);
    }
}
