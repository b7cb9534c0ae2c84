// SPDX-License-Identifier: Apache-2.0
//! Functions that change or ask what a connection does, beyond its bytes.

use crate::calls::dispatch::{change_flags, leave, linked, next};
use crate::calls::socket_options;
use crate::epoll::epoll_sets;
use crate::lifecycle::closing;
use crate::links::service_socket;
use crate::state;
use crate::stream::{buffers, downgrade, receive};
use core::ffi::{c_int, c_ulong, c_void};
use core::sync::atomic::Ordering::Relaxed;
use tare_interpose::real;
use tare_link_segment::Reason;

/// Ends what the program sends: behind bytes that TCP does not take yet, the service thread does. A
/// program that ends only what it receives can still read; what it sees of further bytes is the
/// kernel's.
pub fn shutdown(fd: c_int, how: c_int, call: impl FnOnce() -> c_int) -> c_int {
    let mut has_all = true;
    if let Some(slot) = linked(fd) {
        if how != libc::SHUT_WR {
            slot.is_read_shut.store(1, Relaxed);
        }
        if how == libc::SHUT_RD {
            closing::leave_incoming(slot, Reason::ShutReading);
            closing::await_unread(slot);
        } else if service_socket::is_running() {
            has_all = downgrade::finish_soon(slot);
        } else {
            downgrade::finish(slot, Reason::ShutWriting);
        }
        slot.leave();
    } else if how == libc::SHUT_RD {
        leave(fd, Reason::ShutReading);
    }
    let result = if has_all {
        call()
    } else {
        service_socket::wake_own();
        if how == libc::SHUT_RDWR { next!(shutdown(fd, libc::SHUT_RD)) } else { 0 }
    };
    epoll_sets::report_again(fd);
    result
}

/// Before an option is set: one that the library does not know to be harmless needs TCP for good.
pub fn set(fd: c_int, level: c_int, name: c_int) {
    if !socket_options::is_harmless(level, name) {
        let is_tls = (level, name) == (libc::IPPROTO_TCP, libc::TCP_ULP);
        leave(fd, if is_tls { Reason::Tls } else { Reason::SocketOption });
        if let Some((connection, _)) = state::tracked(fd) {
            connection.is_special.store(1, Relaxed);
        }
    }
}

/// Before an option is asked: one gives bytes of the stream.
pub fn ask(fd: c_int, level: c_int, name: c_int) {
    if (level, name) == (libc::IPPROTO_TCP, socket_options::TCP_ZEROCOPY_RECEIVE) {
        leave(fd, Reason::SocketOption);
    }
}

/// After SO_LINGER was set: while there is a backlog, the library has its own (`guard`).
pub fn lingers(fd: c_int, value: *const libc::linger) {
    if let Some(slot) = linked(fd) {
        let seconds =
            buffers::read_value(value).map(|set| (set.l_onoff != 0).then_some(set.l_linger));
        if let Some(seconds) = seconds {
            downgrade::while_locked(slot, |fd| slot.set_linger(fd, seconds));
        }
        slot.leave();
    }
}

/// As ioctl.
pub fn control(
    fd: c_int,
    request: c_ulong,
    argument: *mut c_void,
    call: impl FnOnce() -> c_int,
) -> c_int {
    if request == libc::FIONBIO as c_ulong {
        return change_flags(fd, call);
    }
    // The kernel sends signals for bytes of TCP alone.
    if request == libc::FIOASYNC as c_ulong {
        leave(fd, Reason::Signals);
    }
    let slot = if request == libc::FIONREAD as c_ulong { linked(fd) } else { None };
    let Some(slot) = slot else { return call() };
    let result = call();
    let waiting = receive::waiting(fd, slot);
    slot.leave();
    match (result, waiting) {
        (0, Ok(waiting)) => {
            let count = c_int::try_from(waiting).unwrap_or(c_int::MAX);
            // SAFETY: the kernel has just written there.
            unsafe { argument.cast::<c_int>().write(count) };
            0
        }
        _ => result,
    }
}
