// SPDX-License-Identifier: Apache-2.0
//! Ends of links: closed descriptors, and programs that want the kernel's connection.

use crate::connection::{Connection, Stage};
use crate::slots::{self, Slot};
use crate::state::{self, DESCRIPTORS};
use crate::{hidden, kernel, lock, rendezvous, send, sets};
use core::ffi::{c_int, c_uint};
use core::sync::atomic::Ordering::Relaxed;
use tare_interpose::real;
use tare_link_segment::{Counter, Source};

/// Milliseconds that a program waits for the other end to take its bytes back from the ring.
const PATIENCE: u32 = 100;

/// Before descriptor `fd` is closed.
pub fn closing(fd: c_int) {
    sets::closed(fd);
    if let Some((connection, entry)) = state::known(fd) {
        if DESCRIPTORS.is_last(entry) {
            end(fd, connection);
        } else if connection.stage() == Stage::Linked
            && let Some(slot) = slots::enter(connection.slot.load(Relaxed))
        {
            sets::tell_all();
            let _ = slot.fd.compare_exchange(fd, -1, Relaxed, Relaxed);
            slot.keep(fd);
            slot.leave();
        }
    }
    DESCRIPTORS.released(fd);
}

fn end(fd: c_int, connection: &Connection) {
    while connection.stage() == Stage::Changing {
        kernel::yield_now();
    }
    if connection.change_stage(Stage::Waiting, Stage::Never) {
        rendezvous::forget(connection);
    }
    if connection.change_stage(Stage::Linked, Stage::Never)
        && let Some(slot) = slots::enter(connection.slot.load(Relaxed))
    {
        close_link(fd, connection, slot);
        slot.leave();
    }
}

fn close_link(fd: c_int, connection: &Connection, slot: &Slot) {
    if slot.process.load(Relaxed) == state::process_number() {
        sets::unregister(connection, slot.own_bell());
    }
    if !slot.is_shared() {
        send::serve(fd, slot);
        let incoming = slot.parts().incoming;
        let held = lock::take(incoming.receiver_lock());
        let source = incoming.source(incoming.capacity());
        lock::release(incoming.receiver_lock(), held);
        // TCP resets a connection that is closed with bytes unread.
        if matches!(source, Ok(Source::Ring { .. })) {
            kernel::reset_at_close(fd);
        }
        incoming.leave();
    }
    slot.keep(fd);
    slot.close();
}

/// The program wants the kernel's connection for good. Waits for the other end if bytes may be in
/// its ring; if that does not answer, the connection is reset.
pub fn leave_link(fd: c_int, slot: &Slot) {
    send::finish(fd, slot);
    let incoming = slot.parts().incoming;
    if incoming.leave() {
        state::count(Counter::Left, 1);
        if slot.parts().outgoing.bell().ring() {
            slot.ring_other();
        }
    }
    for _ in 0..PATIENCE * 2 {
        if incoming.is_back() {
            return;
        }
        kernel::sleep(500);
    }
    if !incoming.is_back() {
        kernel::reset(fd);
        state::count(Counter::Reset, 1);
    }
}

/// All links go back to TCP that `is_meant` says, by a descriptor of theirs.
pub fn leave_all(is_meant: impl Fn(c_int) -> bool) {
    if slots::any() {
        let errno = real::errno();
        sets::tell_all();
        slots::each(|slot| {
            let fd = slot.fd.load(Relaxed);
            if fd >= 0 && is_meant(fd) {
                leave_link(fd, slot);
            }
        });
        real::set_errno(errno);
    }
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
        let next = hidden::next(from).filter(|next| *next <= last);
        let to = next.map_or(Some(last), |next| next.checked_sub(1));
        if let Some(to) = to.filter(|to| from <= *to) {
            result = close(from, to);
        }
        match next {
            Some(next) if result == 0 && next < last => from = next + 1,
            _ => return result,
        }
    }
}

/// Before a range of descriptors is closed.
pub fn closing_range(first: c_uint, last: c_uint) {
    // What was never looked at is nothing to the library.
    const MOST: c_uint = 1 << 20;
    for fd in first..=last.min(MOST - 1) {
        if state::known(fd as c_int).is_some() {
            closing(fd as c_int);
        }
    }
    for fd in first..=last.min(MOST - 1).min(first.saturating_add(1 << 16)) {
        sets::closed(fd as c_int);
    }
    DESCRIPTORS.released_range(first, last);
}
