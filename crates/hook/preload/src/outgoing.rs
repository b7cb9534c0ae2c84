// SPDX-License-Identifier: Apache-2.0
//! What goes out: searched after the call, as far as it was taken; and before it too where a
//! rule blocks, since nothing of it may leave.

use crate::connection::Flow;
use crate::search::{Outcome, Search};
use crate::socket::moving;
use crate::vectors::{Vectors, array, is_readable, one};
use core::cell::Cell;
use core::ffi::{c_int, c_uint};
use libc::{c_void, iovec, mmsghdr, msghdr, size_t, ssize_t};
use tare_hook_segment::{Direction, Symbol};

/// `write`, `send` and the like, from one buffer.
#[inline(always)]
pub fn buffer(
    symbol: Symbol,
    fd: c_int,
    buffer: *const c_void,
    length: size_t,
    flags: c_int,
    call: impl FnOnce() -> ssize_t,
) -> ssize_t {
    vectors(symbol, fd, &one(buffer, length), flags, call)
}

/// `writev` and the like, from the program's own array.
#[inline(always)]
pub fn array_of(
    symbol: Symbol,
    fd: c_int,
    first: *const iovec,
    count: c_int,
    call: impl FnOnce() -> ssize_t,
) -> ssize_t {
    moving(
        symbol,
        Direction::Out,
        fd,
        |search| rehearse(search, |search| ahead(search, first, count as usize, 0)),
        call,
        // SAFETY: the call has just read these vectors, and `result` bytes through them.
        |search, result| unsafe { went(search, array(first, count as usize), result as usize, 0) },
    )
}

/// `sendmsg`.
#[inline(always)]
pub fn message(
    symbol: Symbol,
    fd: c_int,
    message: *const msghdr,
    flags: c_int,
    call: impl FnOnce() -> ssize_t,
) -> ssize_t {
    moving(
        symbol,
        Direction::Out,
        fd,
        |search| rehearse(search, |search| message_ahead(search, message, flags)),
        call,
        // SAFETY: the call has just read this message.
        |search, result| unsafe { message_went(search, &*message, result as usize, flags) },
    )
}

/// `sendmmsg`; `call` is told how many of the messages to send.
#[inline(always)]
pub fn messages(
    symbol: Symbol,
    fd: c_int,
    messages: *mut mmsghdr,
    count: c_uint,
    flags: c_int,
    call: impl FnOnce(c_uint) -> c_int,
) -> c_int {
    let allowed = Cell::new(count);
    moving(
        symbol,
        Direction::Out,
        fd,
        |search| {
            rehearse(search, |search| {
                allowed.set(allowed_ahead(search, messages, count, flags));
                if allowed.get() == 0 && count > 0 { Outcome::Block } else { Outcome::Pass }
            })
        },
        || call(allowed.get()),
        |search, result| {
            // SAFETY: the call has just sent the first `result` messages.
            let sent = unsafe { array(messages.cast_const(), result as usize) };
            for message in sent {
                let datagram = Flow::default();
                let search = search.of_message(&datagram);
                let length = message.msg_len as usize;
                // SAFETY: as above.
                let outcome = unsafe { message_went(&search, &message.msg_hdr, length, flags) };
                if outcome == Outcome::Block && search.kind.is_stream() {
                    return Outcome::Block;
                }
            }
            Outcome::Pass
        },
    )
}

/// `sendfile`: the bytes never come to user space.
#[inline(always)]
pub fn file(symbol: Symbol, fd: c_int, call: impl FnOnce() -> ssize_t) -> ssize_t {
    moving(
        symbol,
        Direction::Out,
        fd,
        |_| Outcome::Pass,
        call,
        |search, result| {
            search.skipped(result as usize);
            Outcome::Pass
        },
    )
}

#[inline(always)]
fn vectors(
    symbol: Symbol,
    fd: c_int,
    vectors: &[iovec],
    flags: c_int,
    call: impl FnOnce() -> ssize_t,
) -> ssize_t {
    moving(
        symbol,
        Direction::Out,
        fd,
        |search| rehearse(search, |search| ahead(search, vectors.as_ptr(), vectors.len(), flags)),
        call,
        // SAFETY: the call has just read `result` bytes through these vectors.
        |search, result| unsafe { went(search, vectors, result as usize, flags) },
    )
}

/// # Safety
/// A call that succeeded has taken `length` bytes by way of these vectors.
#[inline]
unsafe fn went(search: &Search<'_>, vectors: &[iovec], length: usize, flags: c_int) -> Outcome {
    if flags & libc::MSG_OOB != 0 {
        search.skipped(length);
        return Outcome::Pass;
    }
    // SAFETY: promised by the caller.
    search.passed(unsafe { Vectors::new(vectors, length) })
}

/// # Safety
/// A call that succeeded has taken `length` bytes of `message`.
unsafe fn message_went(
    search: &Search<'_>,
    message: &msghdr,
    length: usize,
    flags: c_int,
) -> Outcome {
    // SAFETY: promised by the caller.
    unsafe { went(search, array(message.msg_iov, message.msg_iovlen), length, flags) }
}

/// Asks `ask` whether bytes must not go, where a rule could say so. They have not gone yet:
/// its search goes on from the flow, on a copy of it.
#[inline]
fn rehearse(search: &Search<'_>, ask: impl FnOnce(&Search<'_>) -> Outcome) -> Outcome {
    if !search.may_block() {
        return Outcome::Pass;
    }
    let flow = Flow::default();
    flow.copy(search.flow);
    ask(&Search { flow: &flow, ..*search })
}

/// Whether a call with these buffers must not be made. Buffers that cannot be read are left
/// for the kernel to refuse.
#[cold]
fn ahead(search: &Search<'_>, first: *const iovec, count: usize, flags: c_int) -> Outcome {
    if flags & libc::MSG_OOB != 0
        || count > libc::UIO_MAXIOV as usize
        || !is_readable(first, count * size_of::<iovec>())
    {
        return Outcome::Pass;
    }
    // SAFETY: readable, and the program's own for the time of its call.
    let vectors = unsafe { array(first, count) };
    if !vectors.iter().all(|vector| is_readable(vector.iov_base, vector.iov_len)) {
        return Outcome::Pass;
    }
    // SAFETY: as above.
    search.ahead(unsafe { Vectors::new(vectors, usize::MAX) })
}

fn message_ahead(search: &Search<'_>, message: *const msghdr, flags: c_int) -> Outcome {
    if !is_readable(message, size_of::<msghdr>()) {
        return Outcome::Pass;
    }
    // SAFETY: readable, and the program's own for the time of its call.
    let message = unsafe { message.read_unaligned() };
    ahead(search, message.msg_iov, message.msg_iovlen, flags)
}

/// How many of the messages may go: datagrams up to one that must not; of a stream all or
/// none, as of any other call.
fn allowed_ahead(
    search: &Search<'_>,
    messages: *const mmsghdr,
    count: c_uint,
    flags: c_int,
) -> c_uint {
    let blocks = |number: &c_uint| {
        let datagram = Flow::default();
        let message = messages.wrapping_add(*number as usize);
        message_ahead(&search.of_message(&datagram), message.cast(), flags) == Outcome::Block
    };
    match (0..count.min(libc::UIO_MAXIOV as c_uint)).find(blocks) {
        Some(number) if !search.kind.is_stream() => number,
        Some(_) => 0,
        None => count,
    }
}

#[cfg(test)]
mod tests {
    use core::mem::offset_of;
    use libc::mmsghdr;

    #[test]
    fn a_message_of_several_begins_with_its_header() {
        assert_eq!(offset_of!(mmsghdr, msg_hdr), 0);
    }
}
