// SPDX-License-Identifier: Apache-2.0
//! What goes out: searched after the call, as far as it was taken; and before it too where a
//! rule blocks, since nothing of it may leave.

use crate::calls::chunked_send;
use crate::calls::socket::moving;
use crate::connection::Flow;
use crate::memory::kernel_copy::{self, Copied};
use crate::search::{Outcome, Search};
use core::cell::Cell;
use core::ffi::{c_int, c_uint};
use core::mem::MaybeUninit;
use core::ptr;
use libc::{c_void, iovec, mmsghdr, msghdr, size_t, ssize_t};
use tare_hook_segment::{Direction, Symbol, Unseen};
use tare_shm::Errno;

/// `write`, `send` and the like, from one buffer.
#[inline(always)]
pub fn buffer(
    symbol: Symbol,
    fd: c_int,
    buffer: *const c_void,
    length: size_t,
    flags: c_int,
    call: impl Fn(*const c_void, size_t) -> ssize_t,
) -> ssize_t {
    chunked_send::of_buffer(fd, length, flags, |place, length| {
        let buffer = buffer.wrapping_byte_add(place);
        let copied = |left| Copied::one(buffer, length, left);
        bytes(symbol, fd, flags, copied, || call(buffer, length))
    })
}

/// `writev` and the like, from the program's own array.
#[inline(always)]
pub fn array_of(
    symbol: Symbol,
    fd: c_int,
    first: *const iovec,
    count: c_int,
    call: impl Fn(*const iovec, c_int) -> ssize_t,
) -> ssize_t {
    chunked_send::of_array(fd, first, count as usize, 0, |first, count, _| {
        let copied = |left| Copied::array(first, count, left);
        bytes(symbol, fd, 0, copied, || call(first, count as c_int))
    })
}

/// `sendmsg`.
#[inline(always)]
pub fn message(
    symbol: Symbol,
    fd: c_int,
    message: *const msghdr,
    flags: c_int,
    call: impl Fn(*const msghdr) -> ssize_t,
) -> ssize_t {
    let mut copy = MaybeUninit::uninit();
    if !chunked_send::may_block()
        || kernel_copy::copy(message, core::slice::from_mut(&mut copy)).is_err()
    {
        return whole_message(symbol, fd, message, flags, call);
    }
    // SAFETY: just copied.
    let copy: msghdr = unsafe { copy.assume_init() };
    chunked_send::of_array(fd, copy.msg_iov, copy.msg_iovlen, flags, |first, count, is_first| {
        if ptr::eq(first, copy.msg_iov) {
            return whole_message(symbol, fd, message, flags, &call);
        }
        let mut part = msghdr { msg_iov: first.cast_mut(), msg_iovlen: count, ..copy };
        if !is_first {
            (part.msg_control, part.msg_controllen) = (ptr::null_mut(), 0);
        }
        whole_message(symbol, fd, &raw const part, flags, &call)
    })
}

#[inline(always)]
fn whole_message(
    symbol: Symbol,
    fd: c_int,
    message: *const msghdr,
    flags: c_int,
    call: impl Fn(*const msghdr) -> ssize_t,
) -> ssize_t {
    moving(
        symbol,
        Direction::Out,
        fd,
        |search| rehearse(search, |search| message_ahead(search, message, flags)),
        || call(message),
        |search, result| message_went(search, kernel_copy::value(message), result as usize, flags),
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
            for number in 0..result as usize {
                let datagram = Flow::default();
                let search = search.of_message(&datagram);
                let sent = kernel_copy::value(messages.wrapping_add(number));
                let length = sent.map_or(0, |sent| sent.msg_len as usize);
                let header = sent.map(|sent| sent.msg_hdr);
                let outcome = message_went(&search, header, length, flags);
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

/// `bytes` is told how many of them are meant.
#[inline(always)]
fn bytes(
    symbol: Symbol,
    fd: c_int,
    flags: c_int,
    bytes: impl Fn(usize) -> Copied,
    call: impl FnOnce() -> ssize_t,
) -> ssize_t {
    moving(
        symbol,
        Direction::Out,
        fd,
        |search| rehearse(search, |search| ahead(search, bytes(usize::MAX), flags)),
        call,
        |search, result| went(search, bytes(result as usize), result as usize, flags),
    )
}

/// A call that succeeded has taken these `length` bytes.
#[inline]
fn went(search: &Search<'_>, bytes: Copied, length: usize, flags: c_int) -> Outcome {
    if flags & libc::MSG_OOB != 0 {
        search.skipped(length);
        return Outcome::Pass;
    }
    search.passed(bytes, length)
}

/// A call that succeeded has taken `length` bytes of `message`; `None` if it cannot be copied, as
/// another thread may have taken it away while the call waited.
fn message_went(
    search: &Search<'_>,
    message: Option<msghdr>,
    length: usize,
    flags: c_int,
) -> Outcome {
    let Some(message) = message else {
        search.skipped(length);
        return Outcome::Pass;
    };
    went(search, Copied::array(message.msg_iov, message.msg_iovlen, length), length, flags)
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

/// Whether a call with these bytes must not be made. Bytes that cannot be read are left for the
/// kernel to refuse.
#[cold]
fn ahead(search: &Search<'_>, bytes: Copied, flags: c_int) -> Outcome {
    if flags & libc::MSG_OOB != 0 { Outcome::Pass } else { search.ahead(bytes) }
}

fn message_ahead(search: &Search<'_>, message: *const msghdr, flags: c_int) -> Outcome {
    let mut copy = MaybeUninit::<msghdr>::zeroed();
    let copied = kernel_copy::copy(message, core::slice::from_mut(&mut copy));
    // SAFETY: zeros, or what the program has there: any bytes are a message.
    let message = unsafe { copy.assume_init() };
    match copied {
        Ok(()) => {
            ahead(search, Copied::array(message.msg_iov, message.msg_iovlen, usize::MAX), flags)
        }
        Err(Errno(libc::EFAULT)) => Outcome::Pass,
        Err(_) => {
            search.hook.count_unseen(Unseen::Unblocked);
            Outcome::Pass
        }
    }
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
