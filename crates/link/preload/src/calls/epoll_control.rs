// SPDX-License-Identifier: Apache-2.0
//! epoll_ctl: the sets of a connection change, or the change of a link is postponed.

use crate::epoll::{epoll_members, epoll_sets};
use crate::lifecycle::closing;
use crate::state::connection::{Connection, Stage};
use crate::stream::buffers;
use crate::{kernel, state};
use core::ffi::c_int;
use core::sync::atomic::Ordering::Relaxed;
use libc::epoll_event;
use tare_interpose::real;
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
        return call();
    };
    let is_kept = connection.keep();
    if !is_kept && connection.stage() == Stage::Never {
        return call();
    }
    let result = control_tracked(connection, set, operation, fd, event, call);
    if is_kept {
        connection.end();
    }
    result
}

fn control_tracked(
    connection: &Connection,
    set: c_int,
    operation: c_int,
    fd: c_int,
    event: *const epoll_event,
    call: impl FnOnce() -> c_int,
) -> c_int {
    if let Some(result) = postpone(connection, set, operation, fd, event) {
        return result;
    }
    let result = call();
    if result != 0 {
        return result;
    }
    if operation == libc::EPOLL_CTL_DEL {
        if let Some(place) =
            epoll_sets::find(set).and_then(|value| epoll_sets::registration(connection, value, fd))
        {
            place.set.store(0, Relaxed);
            epoll_sets::with_bell(connection, |slot, place| {
                if let Some(number) = epoll_sets::number(set) {
                    epoll_members::of(number).remove(place);
                }
                slot.leaves_set();
                kernel::epoll(set, libc::EPOLL_CTL_DEL, slot.own_bell(), 0, 0);
            });
        }
        return result;
    }
    // SAFETY: the kernel has just read it.
    let event = unsafe { event.read_unaligned() };
    if !epoll_sets::record(connection, set, operation, fd, event) {
        closing::give_up(fd, connection);
    }
    result
}

/// As epoll_ctl for a link, if the kernel need not know of it yet.
fn postpone(
    connection: &Connection,
    set: c_int,
    operation: c_int,
    fd: c_int,
    event: *const epoll_event,
) -> Option<c_int> {
    if connection.stage() != Stage::Linked || state::is_off() {
        return None;
    }
    let registration = epoll_sets::registration(connection, epoll_sets::find(set)?, fd)?;
    let event = match operation {
        libc::EPOLL_CTL_DEL => None,
        _ => Some(buffers::read_value(event)?),
    };
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
