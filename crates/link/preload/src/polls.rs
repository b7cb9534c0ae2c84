// SPDX-License-Identifier: Apache-2.0
//! Waits for several descriptors: poll and select with the eventfds of linked connections besides.

use crate::connection::{Connection, Stage};
use crate::slots::{self, Slot};
use crate::{bells, downgrade, rendezvous, service, sets, state};
use core::ffi::c_int;
use core::mem::MaybeUninit;
use core::sync::atomic::Ordering::Relaxed;
use libc::{fd_set, nfds_t, pollfd, sigset_t, timespec};
use tare_interpose::real;
use tare_shm::syscall;

/// Descriptors of one wait; connections in longer ones stay TCP.
const MOST: usize = 256;
const INPUT: i16 = libc::POLLIN | libc::POLLRDNORM;
const SECOND: u64 = 1_000_000_000;

/// What the wait has to do about a descriptor.
#[derive(Clone, Copy)]
enum Role {
    Other,
    /// The connection is kept TCP during the wait.
    Kept(&'static Connection),
    Linked(&'static Slot),
}

/// Until when a wait lasts.
#[derive(Clone, Copy)]
pub struct Deadline(Option<u64>);

impl Deadline {
    pub fn after_milliseconds(timeout: c_int) -> Self {
        let after = u64::try_from(timeout).ok().map(|timeout| timeout * (SECOND / 1000));
        Self(after.map(|after| now().saturating_add(after)))
    }

    /// Null is for ever; `None` if the kernel should judge it.
    pub fn after(timeout: *const timespec) -> Option<Self> {
        if timeout.is_null() {
            return Some(Self(None));
        }
        // SAFETY: the program's own time.
        let time = unsafe { timeout.read() };
        let nanoseconds = u64::try_from(time.tv_nsec).ok().filter(|rest| *rest < SECOND)?;
        let seconds = u64::try_from(time.tv_sec).ok()?;
        let after = seconds.saturating_mul(SECOND).saturating_add(nanoseconds);
        Some(Self(Some(now().saturating_add(after))))
    }

    fn left(self) -> Option<timespec> {
        let left = self.0?.saturating_sub(now());
        Some(timespec { tv_sec: (left / SECOND) as i64, tv_nsec: (left % SECOND) as i64 })
    }

    pub fn is_never(self) -> bool {
        self.0.is_none()
    }

    /// Nanoseconds that are left of a wait with an end.
    pub fn rest(self) -> u64 {
        self.0.map_or(0, |end| end.saturating_sub(now()))
    }
}

fn now() -> u64 {
    syscall::clock(libc::CLOCK_MONOTONIC).unwrap_or(0)
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
fn keep_for_good(fd: c_int) {
    if let Some((connection, _)) = state::tracked(fd) {
        rendezvous::give_up(fd, connection);
    }
}

fn role_of(fd: c_int) -> Role {
    if state::is_off() {
        return Role::Other;
    }
    let Some((connection, _)) = state::tracked(fd) else {
        sets::is_waited_for(fd);
        return Role::Other;
    };
    loop {
        match connection.stage() {
            Stage::Never => return Role::Other,
            Stage::Linked => {
                service::ensure();
                let slot = slots::enter(connection.slot.load(Relaxed));
                return slot.map_or(Role::Other, Role::Linked);
            }
            _ if connection.begin() => return Role::Kept(connection),
            // It has just been linked, and says so at once.
            _ => crate::kernel::yield_now(),
        }
    }
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
        for role in roles {
            if let Role::Linked(slot) = role {
                downgrade::serve(slot);
            }
        }
        if deadline.rest() > 0 || deadline.is_never() {
            spin(places, roles);
        }
        for (place, role) in places.iter().zip(roles) {
            if let Some(slot) = input(place, role) {
                is_ready |= bells::falls_asleep(slot);
                all[length] = pollfd { fd: slot.own_bell(), events: libc::POLLIN, revents: 0 };
                length += 1;
            }
        }
        let now = timespec { tv_sec: 0, tv_nsec: 0 };
        let left = if is_ready { Some(now) } else { deadline.left() };
        let time = left.as_ref().map_or(core::ptr::null(), core::ptr::from_ref);
        // SAFETY: the array has this number of places.
        let result = unsafe { real::ppoll(all.as_mut_ptr(), length as nfds_t, time, mask) };
        for (place, role) in places.iter().zip(roles) {
            if let Some(slot) = input(place, role) {
                bells::wakes_up(slot);
            }
        }
        if result < 0 {
            return result;
        }
        let mut ready = 0;
        for ((place, role), polled) in places.iter_mut().zip(roles).zip(&all) {
            place.revents = polled.revents;
            if input(place, role).is_some_and(bells::has_bytes) {
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
        let parts = first.parts();
        let ready = || inputs().any(|slot| slot.parts().incoming.has_news());
        first.bytes_spin.wait(parts.outgoing, parts.incoming, ready);
    }
}

/// As select and pselect; `None` if nothing of it concerns the library.
///
/// # Safety
/// The sets are the program's, null or long enough for `count` descriptors.
pub unsafe fn select(
    count: c_int,
    sets: [*mut fd_set; 3],
    deadline: impl FnOnce() -> Option<Deadline>,
    mask: *const sigset_t,
) -> Option<c_int> {
    const EVENTS: [i16; 3] = [libc::POLLIN, libc::POLLOUT, libc::POLLPRI];
    // As the kernel has it (fs/select.c).
    const READY: [i16; 3] = [
        libc::POLLRDNORM | libc::POLLRDBAND | libc::POLLIN | libc::POLLHUP | libc::POLLERR,
        libc::POLLWRBAND | libc::POLLWRNORM | libc::POLLOUT | libc::POLLERR,
        libc::POLLPRI,
    ];
    if state::statistics().is_none() || !(1..=libc::FD_SETSIZE as c_int).contains(&count) {
        return None;
    }
    let is_in = |set: *mut fd_set, fd: c_int| {
        // SAFETY: as the caller promises.
        !set.is_null() && unsafe { libc::FD_ISSET(fd, set) }
    };
    let mut places = [const { MaybeUninit::<pollfd>::uninit() }; MOST];
    let (mut length, mut concerns, mut is_full) = (0, false, false);
    for fd in 0..count {
        let events = (0..3).filter(|kind| is_in(sets[*kind], fd)).map(|kind| EVENTS[kind]);
        let events = events.fold(0, |all, one| all | one);
        if events == 0 {
            continue;
        }
        let tracked = state::tracked(fd);
        concerns |= tracked.is_some_and(|(connection, _)| connection.stage() != Stage::Never);
        match places.get_mut(length) {
            Some(place) => {
                place.write(pollfd { fd, events, revents: 0 });
                length += 1;
            }
            None => is_full = true,
        }
    }
    if !concerns {
        return None;
    }
    if is_full {
        (0..count).filter(|fd| sets.iter().any(|set| is_in(*set, *fd))).for_each(keep_for_good);
        return None;
    }
    // SAFETY: the first `length` were written.
    let places = unsafe { places[..length].assume_init_mut() };
    let result = poll(places.as_mut_ptr(), length as nfds_t, deadline, mask)?;
    if result < 0 {
        return Some(result);
    }
    if places.iter().any(|place| place.revents & libc::POLLNVAL != 0) {
        real::set_errno(libc::EBADF);
        return Some(-1);
    }
    let mut ready = 0;
    for place in places {
        for kind in 0..3 {
            if !is_in(sets[kind], place.fd) {
                continue;
            }
            if place.revents & READY[kind] != 0 {
                ready += 1;
            } else {
                // SAFETY: as the caller promises.
                unsafe { libc::FD_CLR(place.fd, sets[kind]) };
            }
        }
    }
    Some(ready)
}
