// SPDX-License-Identifier: Apache-2.0
//! Calls with messages: recvmsg and sendmsg, and those with several messages.

use crate::calls::deadline::Deadline;
use crate::calls::dispatch::{all_vectors, incoming, leave, linked, next, outgoing};
use crate::state;
use crate::state::connection::{Connection, Stage};
use crate::stream::buffers::{self, Buffers, read_bytes, read_value, write_value};
use core::ptr;
use core::sync::atomic::Ordering::Relaxed;
use tare_interpose::real;
use tare_interpose::types::*;
use tare_link_segment::Reason;
use tare_shm::rights;

/// `recvfrom` says that there is no address, as the kernel does of a stream.
///
/// # Safety
/// `address` and `length` are null, or those of the program's call, which succeeded.
pub unsafe fn without_peer_address(
    result: ssize_t,
    address: *mut sockaddr,
    length: *mut socklen_t,
) -> ssize_t {
    if result >= 0 && !address.is_null() && !length.is_null() {
        // SAFETY: the program's own.
        unsafe { length.write(0) };
    }
    result
}

pub fn receive_message(
    fd: c_int,
    message: *mut msghdr,
    flags: c_int,
    call: impl Fn() -> ssize_t,
) -> ssize_t {
    let mut by_ring = false;
    let result = incoming(
        fd,
        || {
            let copy = read_value(message.cast_const())?;
            let count = copy.msg_iovlen.min(buffers::MOST);
            let is_kernels = copy.msg_controllen > 0 && has_control_data(fd);
            by_ring = !is_kernels && copy.msg_iovlen <= libc::UIO_MAXIOV as usize;
            if by_ring { Buffers::array(copy.msg_iov, count) } else { None }
        },
        flags,
        call,
    );
    if by_ring && result >= 0 {
        // SAFETY: the program's own message, which was read.
        unsafe {
            (*message).msg_namelen = 0;
            (*message).msg_controllen = 0;
            (*message).msg_flags = flags & libc::MSG_CMSG_CLOEXEC;
        }
    }
    result
}

/// A connection with an option that needs TCP for good, such as `SO_TIMESTAMP`.
fn has_control_data(fd: c_int) -> bool {
    state::tracked(fd).is_some_and(|(connection, _)| connection.is_special.load(Relaxed) != 0)
}

pub fn send_message(
    fd: c_int,
    message: *const msghdr,
    flags: c_int,
    call: impl Fn() -> ssize_t,
) -> ssize_t {
    if state::statistics().is_none() {
        return call();
    }
    if state::tracked(fd).is_none() {
        pass(message);
        return call();
    }
    let buffers = || {
        let copy = read_value(message)?;
        let is_plain = copy.msg_controllen == 0 && copy.msg_namelen == 0;
        if is_plain { all_vectors(copy.msg_iov, copy.msg_iovlen) } else { None }
    };
    outgoing(fd, buffers, flags, call)
}

/// Connections whose descriptors go to another process (SCM_RIGHTS) are TCP's there.
fn pass(message: *const msghdr) {
    if let Some(copied) = read_value(message).filter(|message| message.msg_controllen > 0) {
        let control = copied.msg_control.expose_provenance();
        rights::each_descriptor(control, copied.msg_controllen, read_bytes, |fd| {
            leave(fd, Reason::Passed)
        });
    }
}

/// Whether the messages of a call are to be received or sent one by one.
fn are_ours(fd: c_int, messages: *const mmsghdr, count: c_uint) -> bool {
    let is_ours = |(connection, _): (&Connection, _)| connection.stage() != Stage::Never;
    count > 0 && state::tracked(fd).is_some_and(is_ours) && read_value(messages).is_some()
}

/// As recvmmsg, which is `all`.
pub fn receive_messages(
    fd: c_int,
    messages: *mut mmsghdr,
    count: c_uint,
    flags: c_int,
    timeout: *mut timespec,
    all: impl Fn() -> c_int,
) -> c_int {
    let time = if timeout.is_null() { None } else { read_value(timeout.cast_const()) };
    let end = time.as_ref().and_then(|time| Deadline::after(ptr::from_ref(time)));
    if !are_ours(fd, messages, count) || end.is_none() && !timeout.is_null() {
        return all();
    }
    let mut flags = flags;
    let done = one_by_one(messages, count, |message| {
        let once = flags & !libc::MSG_WAITFORONE;
        let got = receive_message(fd, message, once, || next!(recvmsg(fd, message, once)));
        if flags & libc::MSG_WAITFORONE != 0 {
            flags |= libc::MSG_DONTWAIT;
        }
        (got, got >= 0 && end.is_none_or(|end| end.rest() > 0))
    });
    let error = real::errno();
    let is_of_connection =
        !matches!(error, libc::EAGAIN | libc::EINTR | libc::EFAULT | libc::EBADF);
    if done.1 && done.0 > 0 {
        // The next call is to see it.
        if is_of_connection && let Some(slot) = linked(fd) {
            slot.error.store(error, Relaxed);
            slot.leave();
        }
    }
    if let Some(end) = end.filter(|_| done.0 > 0) {
        let rest = end.rest() as i64;
        let rest = timespec { tv_sec: rest / 1_000_000_000, tv_nsec: rest % 1_000_000_000 };
        if !write_value(timeout, rest) {
            real::set_errno(libc::EFAULT);
            return -1;
        }
    }
    done.0
}

/// As sendmmsg, which is `all`.
pub fn send_messages(
    fd: c_int,
    messages: *mut mmsghdr,
    count: c_uint,
    flags: c_int,
    all: impl Fn() -> c_int,
) -> c_int {
    if !are_ours(fd, messages, count) {
        return all();
    }
    let count = count.min(libc::UIO_MAXIOV as c_uint);
    let done = one_by_one(messages, count, |message| {
        let sent = send_message(fd, message, flags, || next!(sendmsg(fd, message, flags)));
        (sent, sent >= 0 && sent as usize >= length(message))
    });
    done.0
}

/// Bytes of a message; what cannot be read is no part of it.
fn length(message: *const msghdr) -> usize {
    read_value(message).map_or(0, |message| {
        let parts = (0..message.msg_iovlen).map_while(|part| {
            let part: iovec = read_value(message.msg_iov.wrapping_add(part).cast_const())?;
            Some(part.iov_len)
        });
        parts.fold(0, usize::saturating_add)
    })
}

/// Does something with each message, as long as that succeeds and says to go on. Returns the number
/// of messages that are done, -1 for an error at the first one; and whether an error ended it.
fn one_by_one(
    messages: *mut mmsghdr,
    count: c_uint,
    mut what: impl FnMut(*mut msghdr) -> (ssize_t, bool),
) -> (c_int, bool) {
    let errno = real::errno();
    for done in 0..count {
        let message = messages.wrapping_add(done as usize);
        let (moved, goes_on) = match read_value(message.cast_const()) {
            Some(_) => what(message.cast()),
            None => {
                real::set_errno(libc::EFAULT);
                (-1, false)
            }
        };
        if moved < 0 {
            return (if done > 0 { done as c_int } else { -1 }, true);
        }
        // SAFETY: the program's own, which was read.
        unsafe { (*message).msg_len = moved as c_uint };
        if !goes_on {
            return (done as c_int + 1, false);
        }
    }
    real::set_errno(errno);
    (count as c_int, false)
}
