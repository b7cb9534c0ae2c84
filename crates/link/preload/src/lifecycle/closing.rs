// SPDX-License-Identifier: Apache-2.0
//! Ends of links: closed descriptors, and programs that want the kernel's connection.

use crate::descriptors::reserved_descriptors;
use crate::epoll::{epoll_sets, one_shot};
use crate::kernel;
use crate::lifecycle::endpoint_name::{ends, forget};
use crate::lifecycle::{connection_log, rendezvous, service_thread};
use crate::links::slots::{self, Slot};
use crate::links::{receiver_lock, sender_lock, service_socket};
use crate::state::connection::{Connection, Stage};
use crate::state::{self, DESCRIPTORS, lock};
use crate::stream::{downgrade, eventfds};
use core::ffi::{c_int, c_uint};
use core::sync::atomic::Ordering::{Acquire, Relaxed};
use tare_interpose::real;
use tare_link_segment::{Counter, Reason, Source};

/// Microseconds that a program waits for the other end to take its bytes back from the ring, slept
/// in pieces: on a busy machine the other end has more time. A program with a quota of CPU time may
/// have none for a while.
const TIMEOUT: i64 = 1_000_000;
/// The same for an end that has no service thread.
const SHORT_TIMEOUT: i64 = 100_000;

/// Before descriptor `fd` is closed.
pub fn closing(fd: c_int) {
    epoll_sets::closed(fd);
    if let Some((connection, entry)) = state::known(fd) {
        if DESCRIPTORS.is_last(entry) {
            end(fd, connection);
        } else if connection.stage() == Stage::Linked
            && let Some(slot) = slots::enter(connection.slot.load(Relaxed))
        {
            epoll_sets::update_kernel();
            slot.keep(fd);
            if slot.fd.load(Relaxed) == fd {
                replace(slot, another(fd, connection).unwrap_or(-1));
            }
            slot.leave();
        }
    }
    DESCRIPTORS.released(fd);
}

/// From here on the library uses another descriptor of a connection, or none: the number of the one
/// that is closed may soon be another file's. Waits for threads that use it now.
fn replace(slot: &Slot, another: c_int) {
    let (outgoing, incoming) = (slot.mapping().outgoing, slot.mapping().incoming);
    // A thread of another process, which uses its own descriptor, may have been stopped.
    let is_shared = slot.is_shared();
    let sends = lock::take_soon(outgoing.sender_lock());
    let sends = sends.or_else(|| (!is_shared).then(|| sender_lock::take(slot))?);
    let receives = receiver_lock::take_soon_to_receive(slot);
    let receives =
        receives.or_else(|| (!is_shared).then(|| receiver_lock::take_to_receive(slot))?);
    slot.fd.store(another, Relaxed);
    receives.into_iter().for_each(|held| lock::release(incoming.receiver_lock(), held));
    sends.into_iter().for_each(|held| lock::release(outgoing.sender_lock(), held));
}

/// Another descriptor of a connection.
fn another(fd: c_int, connection: &Connection) -> Option<c_int> {
    DESCRIPTORS.find(|other, entry| {
        let of_other = DESCRIPTORS.connection(entry);
        other != fd && of_other.is_some_and(|other| core::ptr::eq(other, connection))
    })
}

fn end(fd: c_int, connection: &Connection) {
    while connection.stage() == Stage::Changing {
        kernel::yield_now();
    }
    end_unlinked(fd, connection);
    if connection.change_stage(Stage::Linked, Stage::Never)
        && let Some(slot) = slots::enter(connection.slot.load(Relaxed))
    {
        close_link(fd, connection, slot);
        slot.leave();
    }
}

/// The program closes a connection that is not linked, or exits. Of several processes that have it,
/// none counts it.
fn end_unlinked(fd: c_int, connection: &Connection) {
    let is_own = connection.forks.load(Relaxed) == state::forks();
    if connection.change_stage(Stage::Waiting, Stage::Never) {
        rendezvous::cache_absence(fd, connection);
        forget(connection);
        if is_own {
            connection_log::stays_tcp(fd, Reason::NoAnswer);
        }
    } else if is_own
        && connection.bytes.load(Relaxed) > 0
        && connection.change_stage(Stage::New, Stage::Never)
    {
        connection_log::stays_tcp(fd, Reason::Short);
    }
}

fn close_link(fd: c_int, connection: &Connection, slot: &Slot) {
    epoll_sets::forget(connection);
    if slot.release_end() {
        epoll_sets::withdraw(connection, slot.own_eventfd());
        if slot.mapping().outgoing.unread() > 0 {
            service_thread::ensure();
        }
        let linger = slot.linger(fd);
        if !resets(fd, slot)
            && linger != Some(0)
            && service_socket::is_running()
            && leaves_bytes(slot, linger)
        {
            replace(slot, -1);
            service_socket::wake_own();
            return;
        }
    } else {
        leave_to_others(fd, connection, slot);
    }
    slot.keep(fd);
    replace(slot, -1);
    slot.close();
}

/// Other processes have the connection, too. Those that wait in a set which they have inherited need
/// an event that stays when this process has closed the connection: TCP's.
fn leave_to_others(fd: c_int, connection: &Connection, slot: &Slot) {
    if slot.sets.load(Relaxed) > 0 && slot.process.load(Relaxed) == state::process_number() {
        leave_incoming(slot, Reason::Shared);
        service_socket::wake_other(&slot.mapping().link);
        epoll_sets::withdraw(connection, slot.own_eventfd());
    }
    leave_unread(fd, slot);
}

/// This process closes a shared connection: bytes that the other end has not read go to TCP, unless
/// another process with a service thread can send them later. Bytes for which TCP has no room would
/// stay in the ring, and no process could take them back.
fn leave_unread(fd: c_int, slot: &Slot) {
    let has_unread = slot.mapping().outgoing.unread() > 0;
    if has_unread
        && service_socket::is_running()
        && !service_socket::has_another(&slot.mapping().link)
    {
        downgrade::settle(fd, slot, Reason::Shared);
    }
}

/// The program receives no more. TCP resets a connection that is closed with bytes unread: whether
/// there are any.
fn resets(fd: c_int, slot: &Slot) -> bool {
    let incoming = slot.mapping().incoming;
    let source = receiver_lock::while_receiving(slot, || incoming.source(incoming.capacity()));
    // Who has taken it back to TCP may have passed it to another program.
    let is_own = slot.is_read_shut.load(Relaxed) != 0 && slot.is_given_up.load(Relaxed) == 0;
    incoming.leaves_because(Reason::Closed);
    let was_left = !incoming.leave() && !is_own;
    let has_unread = !was_left && kernel::waiting(fd).is_ok_and(|waiting| waiting > 0);
    let resets = has_unread || matches!(source, Some(Ok(Source::Ring { .. })));
    if resets {
        kernel::reset_at_close(fd);
    }
    resets
}

/// The program closes a connection. Whether the service thread has bytes of it that TCP does not
/// take yet; `close` waits for them if the program wants that.
fn leaves_bytes(slot: &Slot, linger: Option<c_int>) -> bool {
    let end = kernel::now() + linger.map_or(0, |seconds| i64::from(seconds) * 1000);
    let mut is_done = downgrade::end(slot, |_| false);
    while !is_done && kernel::now() < end {
        kernel::sleep(1000);
        is_done = downgrade::end(slot, |_| false);
    }
    !is_done && !downgrade::end(slot, |fd| slot.keep_copy(fd)) && slot.is_closed.load(Acquire) != 0
}

/// The program wants to receive through TCP for good: the other end takes back what is in its ring.
pub fn leave_incoming(slot: &Slot, reason: Reason) {
    one_shot::leaving(slot);
    slot.mapping().incoming.leaves_because(reason);
    if slot.mapping().incoming.leave() {
        state::count(Counter::Left, 1);
        state::count_reason(|statistics| &statistics.left, reason);
        if slot.mapping().outgoing.doorbell().ring() {
            slot.wake_other();
        }
    }
}

/// Behind `leave_incoming`: waits until TCP has what the other end takes back.
pub fn await_unread(slot: &Slot) {
    let incoming = slot.mapping().incoming;
    await_other(slot, || incoming.is_back() && !incoming.has_backlog());
}

/// Waits until the other end has done something, which its service thread does; false if it did not.
fn await_other(slot: &Slot, is_done: impl Fn() -> bool) -> bool {
    const SHORTEST: i64 = 20;
    const LONGEST: i64 = 500;
    let (mut waited, mut moment, mut timeout) = (0, SHORTEST, TIMEOUT);
    while !is_done() {
        if waited == 0 && !service_socket::wake_other(&slot.mapping().link) {
            timeout = SHORT_TIMEOUT;
        }
        if waited >= timeout {
            return false;
        }
        kernel::sleep(moment);
        waited += moment;
        moment = (moment * 2).min(LONGEST);
    }
    true
}

/// The program wants the kernel's connection for good. Waits for the other end if bytes may be in
/// its ring; if that does not answer, the connection is reset.
pub fn leave_link(fd: c_int, slot: &Slot, reason: Reason) {
    slot.is_given_up.store(1, Relaxed);
    downgrade::finish(slot, reason);
    leave_incoming(slot, reason);
    let incoming = slot.mapping().incoming;
    // Bytes that were taken back reach TCP just after the change, or later.
    let is_late = || incoming.has_backlog() && !incoming.is_guarded();
    let is_back = await_other(slot, || incoming.is_back() && !is_late()) || incoming.is_back();
    if !is_back || is_late() && kernel::has_ended(fd) {
        downgrade::reset(fd);
        return;
    }
    // Nothing rings any more, and descriptors of others may read what there is.
    eventfds::settle_for_sets(slot);
}

/// All links go back to TCP that `is_meant` says, by any of their descriptors.
#[cold]
#[inline(never)]
pub fn leave_all(reason: Reason, is_meant: fn(c_int) -> bool) {
    if slots::any() {
        let errno = real::errno();
        epoll_sets::update_kernel();
        DESCRIPTORS.find(|fd, entry| {
            if let Some(connection) = DESCRIPTORS.connection(entry)
                && connection.stage() == Stage::Linked
                && is_meant(fd)
                && let Some(slot) = slots::enter(connection.slot.load(Relaxed))
            {
                connection_log::leaves_link(fd, reason);
                leave_link(fd, slot, reason);
                slot.leave();
            }
            false
        });
        real::set_errno(errno);
    }
}

/// Connections of a set are TCP's from now on: threads may wait for it by a descriptor that is not
/// known.
pub fn leave_set(set: u64) {
    give_up_all(Reason::EpollSet, &|connection| epoll_sets::is_in(connection, set));
    epoll_sets::forget_set(set);
}

/// Before a fork: of two processes that wait for one event, neither knows what the other one got.
pub fn forking() {
    epoll_sets::update_kernel();
    if one_shot::is_used() {
        give_up_all(Reason::EpollFlags, &|connection| {
            connection.stage() == Stage::Linked && one_shot::is_one_shot(connection)
        });
    }
}

/// Connections stay TCP from now on, or go back to it.
pub fn give_up_all(reason: Reason, are_meant: &dyn Fn(&Connection) -> bool) {
    DESCRIPTORS.find(|fd, entry| {
        let connection = DESCRIPTORS.connection(entry);
        if let Some(connection) = connection.filter(|connection| are_meant(connection)) {
            give_up(fd, connection, reason);
        }
        false
    });
}

/// The program ends: what the other ends have not read goes to TCP, which delivers it.
pub fn end_all() {
    each_open(|fd, slot| {
        slot.received.flush();
        if slot.is_closed.load(Acquire) != 0 {
            return;
        }
        if !slot.release_end() {
            leave_unread(fd, slot);
        } else if slot.linger(fd) != Some(0) && !resets(fd, slot) {
            downgrade::end(slot, |_| false);
        }
    });
    DESCRIPTORS.find(|fd, entry| {
        if let Some(connection) = DESCRIPTORS.connection(entry) {
            end_unlinked(fd, connection);
        }
        false
    });
}

/// The program may end with these connections: what TCP takes at once goes to TCP.
pub fn settle_all(is_meant: impl Fn(c_int) -> bool) {
    each_open(|fd, slot| {
        slot.recheck_sharing();
        if is_meant(fd) && !slot.is_shared() {
            downgrade::settle(fd, slot, Reason::Exec);
        }
    });
}

fn each_open(what: impl Fn(c_int, &Slot)) {
    let errno = real::errno();
    slots::each(|slot| {
        if let Some(fd) = slot.any_descriptor() {
            what(fd, slot);
        }
    });
    real::set_errno(errno);
}

/// Does `close` with the ranges between the library's own descriptors.
pub fn ranges(
    first: c_uint,
    last: c_uint,
    mut close: impl FnMut(c_uint, c_uint) -> c_int,
) -> c_int {
    let mut from = first;
    let mut result = 0;
    loop {
        let next = reserved_descriptors::while_settled(|| {
            let next = reserved_descriptors::next(from).filter(|next| *next <= last);
            let to = next.map_or(Some(last), |next| next.checked_sub(1));
            if let Some(to) = to.filter(|to| from <= *to) {
                result = close(from, to);
            }
            next
        });
        match next {
            Some(next) if result == 0 && next < last => from = next + 1,
            _ => return result,
        }
    }
}

/// Before a range of descriptors is closed.
pub fn closing_range(first: c_uint, last: c_uint) {
    // What was never looked at is nothing to the library.
    DESCRIPTORS.find(|fd, _| {
        if (first..=last).contains(&(fd as c_uint)) {
            closing(fd);
        }
        false
    });
    epoll_sets::closed_range(first, last);
    DESCRIPTORS.released_range(first, last);
}

/// The connection stays TCP from now on, or goes back to it.
pub fn give_up(fd: c_int, connection: &Connection, reason: Reason) {
    loop {
        match connection.stage() {
            Stage::New => {
                if connection.change_stage(Stage::New, Stage::Never) {
                    stays_tcp(fd, connection, reason);
                    return;
                }
            }
            Stage::Waiting => {
                if connection.change_stage(Stage::Waiting, Stage::Never) {
                    forget(connection);
                    stays_tcp(fd, connection, reason);
                    return;
                }
            }
            Stage::Changing => kernel::yield_now(),
            Stage::Linked => {
                if let Some(slot) = slots::enter(connection.slot.load(Relaxed)) {
                    connection_log::leaves_link(fd, reason);
                    epoll_sets::update_kernel();
                    leave_link(fd, slot, reason);
                    slot.leave();
                }
                return;
            }
            Stage::Never => return,
        }
    }
}

/// A connection stays TCP: what is no connection yet counts when it is connected.
fn stays_tcp(fd: c_int, connection: &Connection, reason: Reason) {
    if ends(fd).is_some() {
        connection_log::stays_tcp(fd, reason);
    } else {
        connection.reason.store(reason as u32, Relaxed);
    }
}

/// The program has connected a socket that stays TCP.
#[cold]
pub fn connected(fd: c_int, connection: &Connection) {
    let reason = connection.reason.swap(0, Relaxed);
    if reason != 0 {
        connection_log::stays_tcp(fd, Reason::of(reason));
    }
}
