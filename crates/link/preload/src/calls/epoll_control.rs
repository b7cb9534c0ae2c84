// SPDX-License-Identifier: Apache-2.0
//! epoll_ctl: the sets of a connection change, or the change of a link is postponed.

use crate::calls::dispatch::linked;
use crate::epoll::{epoll_members, epoll_sets, one_shot};
use crate::lifecycle::closing;
use crate::state::connection::{Connection, Stage};
use crate::stream::buffers;
use crate::{kernel, state};
use core::ffi::c_int;
use core::sync::atomic::Ordering::Relaxed;
use libc::epoll_event;
use tare_interpose::real;
use tare_link_segment::Reason;
use tare_shm::syscall::Errno;

/// Before the program changes a set: whether the connection may be linked after it.
pub fn control(
    set: c_int,
    operation: c_int,
    fd: c_int,
    event: *const epoll_event,
    call: impl FnOnce() -> c_int,
) -> c_int {
    let Some((connection, _)) = state::tracked(fd) else {
        epoll_sets::is_waited_for(fd);
        return control_other(set, operation, event, call);
    };
    let is_kept = connection.keep();
    if !is_kept && connection.stage() == Stage::Never {
        return control_other(set, operation, event, call);
    }
    let result = control_tracked(connection, set, operation, fd, event, call);
    if is_kept {
        connection.end();
    }
    result
}

/// Of what is no link, and never will be one.
fn control_other(
    set: c_int,
    operation: c_int,
    event: *const epoll_event,
    call: impl FnOnce() -> c_int,
) -> c_int {
    let result = call();
    if result == 0 && matches!(operation, libc::EPOLL_CTL_ADD | libc::EPOLL_CTL_MOD) {
        // SAFETY: the kernel has just read it.
        give_up_same(one_shot::add_other_data(set, unsafe { event.read_unaligned() }));
    }
    result
}

/// What else is in a set has the data of a link: nothing can tell their events apart.
fn give_up_same(place: Option<u32>) {
    if let Some(place) = place {
        let is_same = |connection: &Connection| {
            connection.stage() == Stage::Linked && connection.slot.load(Relaxed) == place
        };
        closing::give_up_all(Reason::EpollFlags, &is_same);
    }
}

fn control_tracked(
    connection: &Connection,
    set: c_int,
    operation: c_int,
    fd: c_int,
    event: *const epoll_event,
    call: impl FnOnce() -> c_int,
) -> c_int {
    let is_wanted = connection.stage() == Stage::Linked && operation != libc::EPOLL_CTL_DEL;
    let wanted = if is_wanted { buffers::read_value(event) } else { None };
    if let Some(result) = postpone(connection, set, operation, fd, wanted) {
        return result;
    }
    let is_one_shot = wanted.is_some_and(|event| event.events & libc::EPOLLONESHOT as u32 != 0);
    if let Some(event) = wanted.filter(|_| is_one_shot) {
        one_shot::begin(connection, set, operation, fd, event);
    }
    let result = call();
    if result != 0 {
        if is_one_shot {
            one_shot::cancel(connection, set, operation);
        }
        return result;
    }
    if operation == libc::EPOLL_CTL_DEL {
        if let Some(place) =
            epoll_sets::find(set).and_then(|value| epoll_sets::registration(connection, value, fd))
        {
            place.set.store(0, Relaxed);
            epoll_sets::with_eventfd(connection, |slot, place| {
                if let Some(number) = epoll_sets::number(set) {
                    epoll_members::of(number).remove(place);
                }
                slot.leaves_set();
                kernel::epoll(set, libc::EPOLL_CTL_DEL, slot.own_eventfd(), 0, 0);
            });
        }
        return result;
    }
    // SAFETY: the kernel has just read it.
    let event = unsafe { event.read_unaligned() };
    if let Err(reason) = epoll_sets::record(connection, set, operation, fd, event) {
        closing::give_up(fd, connection, reason);
    } else if one_shot::is_used() {
        give_up_same(one_shot::conflicting_link(connection, set, event));
    }
    if let Some(slot) = linked(fd) {
        one_shot::receive_if_known(connection, slot);
        slot.leave();
    }
    result
}

/// As epoll_ctl for a link, if the kernel need not know of it yet.
fn postpone(
    connection: &Connection,
    set: c_int,
    operation: c_int,
    fd: c_int,
    event: Option<epoll_event>,
) -> Option<c_int> {
    let is_readable = event.is_some() || operation == libc::EPOLL_CTL_DEL;
    if connection.stage() != Stage::Linked || state::is_off() || !is_readable {
        return None;
    }
    let registration = epoll_sets::registration(connection, epoll_sets::find(set)?, fd)?;
    let members = epoll_members::of(epoll_sets::number(set)?);
    match members.change(connection.slot.load(Relaxed), operation, event)? {
        Ok(()) => {
            if let Some(event) = event {
                registration.events.store(event.events, Relaxed);
                registration.data.store(event.u64, Relaxed);
            }
            Some(0)
        }
        Err(Errno(error)) => {
            real::set_errno(error);
            Some(-1)
        }
    }
}
