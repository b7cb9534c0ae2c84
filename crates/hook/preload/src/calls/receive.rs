// SPDX-License-Identifier: Apache-2.0
//! What comes in: searched after the call, as far as it wrote.

use crate::calls::socket::moving;
use crate::connection::Flow;
use crate::memory::kernel_copy::Copied;
use crate::memory::vectors::{Vectors, array, one};
use crate::record::hook::{DESCRIPTORS, Hook};
use crate::search::{Outcome, Search};
use core::ffi::c_int;
use libc::{c_void, iovec, mmsghdr, msghdr, size_t, ssize_t};
use tare_hook_segment::{Direction, Symbol};
use tare_interpose::Kind;
use tare_shm::syscall;

/// `read`, `recv` and the like, into one buffer.
#[inline(always)]
pub fn buffer(
    symbol: Symbol,
    fd: c_int,
    buffer: *const c_void,
    length: size_t,
    flags: c_int,
    call: impl FnOnce() -> ssize_t,
) -> ssize_t {
    moving(symbol, Direction::In, fd, pass, call, |search, result| {
        // SAFETY: the call has just written `result` bytes there, or as many as fit.
        unsafe { came(search, &one(buffer, length), result as usize, flags) }
    })
}

/// `readv` and the like.
#[inline(always)]
pub fn vectors(
    symbol: Symbol,
    fd: c_int,
    vectors: *const iovec,
    count: c_int,
    call: impl FnOnce() -> ssize_t,
) -> ssize_t {
    moving(symbol, Direction::In, fd, pass, call, |search, result| {
        // SAFETY: the call has just read these vectors and written `result` bytes through them.
        unsafe { came(search, array(vectors, count as usize), result as usize, 0) }
    })
}

/// `recvmsg`.
#[inline(always)]
pub fn message(
    symbol: Symbol,
    fd: c_int,
    message: *mut msghdr,
    flags: c_int,
    call: impl FnOnce() -> ssize_t,
) -> ssize_t {
    let result = moving(symbol, Direction::In, fd, pass, call, |search, result| {
        // SAFETY: the call has just filled this message.
        unsafe {
            let outcome = message_came(search, &*message, result as usize, flags);
            if outcome == Outcome::Block {
                withhold(&*message);
            }
            outcome
        }
    });
    if result == 0 {
        // Descriptors can come without bytes.
        // SAFETY: the call has just filled this message.
        unsafe { renew(&*message) };
    }
    result
}

/// `recvmmsg`.
#[inline(always)]
pub fn messages(
    symbol: Symbol,
    fd: c_int,
    messages: *mut mmsghdr,
    flags: c_int,
    call: impl FnOnce() -> c_int,
) -> c_int {
    moving(symbol, Direction::In, fd, pass, call, |search, result| {
        // SAFETY: the call has just filled the first `result` messages.
        let messages = unsafe { core::slice::from_raw_parts_mut(messages, result as usize) };
        for number in 0..messages.len() {
            let datagram = Flow::default();
            let search = search.of_message(&datagram);
            let message = &mut messages[number];
            let length = message.msg_len as usize;
            // SAFETY: the call has just filled this message.
            if unsafe { message_came(&search, &message.msg_hdr, length, flags) } == Outcome::Pass {
                continue;
            }
            if search.kind.is_stream() {
                // The program gets an error, and looks at none of them.
                // SAFETY: the call has just filled these messages.
                messages.iter().for_each(|message| unsafe { withhold(&message.msg_hdr) });
                return Outcome::Block;
            }
            // The datagrams around it are the program's: this one arrives empty.
            message.msg_len = 0;
            // SAFETY: the call has just filled this message.
            unsafe { withhold(&message.msg_hdr) };
        }
        Outcome::Pass
    })
}

fn pass(_: &Search<'_>) -> Outcome {
    Outcome::Pass
}

/// # Safety
/// `message` was filled by a call that succeeded and moved `length` bytes.
unsafe fn message_came(
    search: &Search<'_>,
    message: &msghdr,
    length: usize,
    flags: c_int,
) -> Outcome {
    // SAFETY: promised by the caller.
    unsafe {
        renew(message);
        came(search, array(message.msg_iov, message.msg_iovlen), length, flags)
    }
}

/// Closes the descriptors that came with a message which the program will not look at.
///
/// # Safety
/// As for `message_came`.
#[cold]
unsafe fn withhold(message: &msghdr) {
    // SAFETY: promised by the caller; the descriptors are new, and known to nobody else.
    unsafe {
        renew(message);
        each_descriptor(message, syscall::close);
    }
}

/// # Safety
/// A call that succeeded has moved `length` bytes by way of these vectors.
#[inline]
unsafe fn came(search: &Search<'_>, vectors: &[iovec], length: usize, flags: c_int) -> Outcome {
    if flags & (libc::MSG_PEEK | libc::MSG_ERRQUEUE) != 0 {
        // The bytes will come again, or are no bytes of the stream.
        return Outcome::Pass;
    }
    // Only TCP discards what it is asked to truncate; other streams deliver it.
    let is_truncated = flags & libc::MSG_TRUNC != 0;
    if is_truncated && search.kind == Kind::Tcp || flags & libc::MSG_OOB != 0 {
        search.skipped(length);
        return Outcome::Pass;
    }
    if is_truncated {
        // The number may be TCP's by now, through a call that was not seen: then nothing was
        // written, wherever the program's buffers are.
        return search.passed(Copied::array(vectors.as_ptr(), vectors.len(), length), length);
    }
    // SAFETY: promised by the caller.
    search.passed(unsafe { Vectors::new(vectors, length) }, length)
}

/// Forgets what was known under the numbers of descriptors that came with a message.
///
/// # Safety
/// As for `message_came`.
unsafe fn renew(message: &msghdr) {
    if Hook::get().is_some() {
        // SAFETY: promised by the caller.
        unsafe { each_descriptor(message, |fd| DESCRIPTORS.released(fd)) };
    }
}

/// # Safety
/// As for `message_came`.
unsafe fn each_descriptor(message: &msghdr, mut each: impl FnMut(c_int)) {
    // SAFETY: the kernel wrote the control messages; the macros stay inside them.
    unsafe {
        let mut header = libc::CMSG_FIRSTHDR(message);
        while let Some(control) = header.as_ref() {
            if control.cmsg_level == libc::SOL_SOCKET && control.cmsg_type == libc::SCM_RIGHTS {
                let data = libc::CMSG_DATA(header).cast::<c_int>();
                let bytes = control.cmsg_len.saturating_sub(libc::CMSG_LEN(0) as usize);
                for number in 0..bytes / size_of::<c_int>() {
                    each(data.add(number).read_unaligned());
                }
            }
            header = libc::CMSG_NXTHDR(message, header);
        }
    }
}
