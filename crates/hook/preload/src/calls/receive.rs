// SPDX-License-Identifier: Apache-2.0
//! What comes in: searched after the call, as far as it wrote.

use crate::calls::socket::moving;
use crate::connection::Flow;
use crate::memory::iovec_snapshot::IovecSnapshot;
use crate::memory::kernel_copy::{self, Copied};
use crate::memory::vectors::{Vectors, array, one};
use crate::record::hook::{DESCRIPTORS, Hook};
use crate::search::{Outcome, Search};
use core::cell::Cell;
use core::ffi::c_int;
use core::ptr;
use libc::{c_void, iovec, mmsghdr, msghdr, size_t, ssize_t};
use tare_hook_segment::{Direction, Symbol};
use tare_interpose::Kind;
use tare_shm::{rights, syscall};

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
        unsafe { came_into(search, &one(buffer, length), result as usize, flags) }
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
    let snapshot = Cell::new(IovecSnapshot::Nothing);
    let look = |_: &Search<'_>| {
        snapshot.set(IovecSnapshot::of(vectors, usize::try_from(count).unwrap_or(0)));
        Outcome::Pass
    };
    moving(symbol, Direction::In, fd, look, call, |search, result| {
        // SAFETY: the call has just written `result` bytes there.
        unsafe { came(search, &snapshot.get(), result as usize, 0) }
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
    let snapshot = Cell::new(None);
    let look = |_: &Search<'_>| {
        snapshot.set(Message::of(message));
        Outcome::Pass
    };
    let result = moving(symbol, Direction::In, fd, look, call, |search, result| {
        let Some(snapshot) = snapshot.get() else {
            search.skipped(result as usize);
            return Outcome::Pass;
        };
        // SAFETY: the call has just filled this message.
        unsafe {
            let (header, buffers) = snapshot.filled(message);
            let outcome = message_came(search, &header, &buffers, result as usize, flags);
            if outcome == Outcome::Block {
                withhold(&header);
            }
            outcome
        }
    });
    if result == 0
        && let Some(snapshot) = snapshot.get()
    {
        // Descriptors can come without bytes.
        // SAFETY: the call has just filled this message.
        unsafe { renew(&snapshot.filled(message).0) };
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
        let filled = |number: usize| {
            let message = messages.wrapping_add(number);
            // SAFETY: the call has just filled it.
            let in_place = || syscall::are_forbidden().then(|| unsafe { message.read() });
            kernel_copy::value(message).or_else(in_place)
        };
        for number in 0..result as usize {
            let datagram = Flow::default();
            let search = search.of_message(&datagram);
            let Some(message) = filled(number) else { continue };
            let (header, length) = (message.msg_hdr, message.msg_len as usize);
            // Copied once the bytes are there: the array of messages can be long.
            let buffers =
                if syscall::are_forbidden() { IovecSnapshot::InPlace } else { IovecSnapshot::Many };
            let buffers = buffers(header.msg_iov, header.msg_iovlen);
            // SAFETY: the call has just filled this message.
            if unsafe { message_came(&search, &header, &buffers, length, flags) } == Outcome::Pass {
                continue;
            }
            if search.kind.is_stream() {
                // The program gets an error, and looks at none of them.
                for message in (0..result as usize).filter_map(filled) {
                    // SAFETY: the call has just filled it.
                    unsafe { withhold(&message.msg_hdr) };
                }
                return Outcome::Block;
            }
            // The datagrams around it are the program's: this one arrives empty.
            // SAFETY: the call has just filled this message.
            unsafe {
                (*messages.add(number)).msg_len = 0;
                withhold(&header);
            }
        }
        Outcome::Pass
    })
}

/// What a `recvmsg` asks for.
#[derive(Clone, Copy)]
struct Message {
    /// `None` where no system call may copy it.
    header: Option<msghdr>,
    buffers: IovecSnapshot,
}

impl Message {
    fn of(message: *const msghdr) -> Option<Self> {
        if syscall::are_forbidden() {
            return Some(Self { header: None, buffers: IovecSnapshot::Nothing });
        }
        let header = kernel_copy::value(message)?;
        let buffers = IovecSnapshot::of(header.msg_iov, header.msg_iovlen);
        Some(Self { header: Some(header), buffers })
    }

    /// The header with what the kernel has written into it, and the buffers.
    ///
    /// # Safety
    /// A call that succeeded has just filled `message`.
    unsafe fn filled(&self, message: *const msghdr) -> (msghdr, IovecSnapshot) {
        let Some(header) = self.header else {
            // SAFETY: promised by the caller.
            let header = unsafe { message.read() };
            return (header, IovecSnapshot::InPlace(header.msg_iov, header.msg_iovlen));
        };
        let has_control = header.msg_controllen > 0;
        let now = if has_control { kernel_copy::value(message) } else { None };
        let length = now.map_or(0, |now| now.msg_controllen.min(header.msg_controllen));
        (msghdr { msg_controllen: length, ..header }, self.buffers)
    }
}

fn pass(_: &Search<'_>) -> Outcome {
    Outcome::Pass
}

/// # Safety
/// `message` was filled by a call that succeeded and moved `length` bytes into `buffers`.
unsafe fn message_came(
    search: &Search<'_>,
    message: &msghdr,
    buffers: &IovecSnapshot,
    length: usize,
    flags: c_int,
) -> Outcome {
    // SAFETY: promised by the caller.
    unsafe {
        renew(message);
        came(search, buffers, length, flags)
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
/// A call that succeeded has moved `length` bytes into these buffers.
#[inline]
unsafe fn came(
    search: &Search<'_>,
    snapshot: &IovecSnapshot,
    length: usize,
    flags: c_int,
) -> Outcome {
    match snapshot {
        // SAFETY: promised by the caller.
        IovecSnapshot::Few(few, count) => unsafe {
            came_into(search, &few[..*count], length, flags)
        },
        IovecSnapshot::InPlace(first, count) => {
            // SAFETY: as above.
            unsafe { came_into(search, array(*first, *count), length, flags) }
        }
        IovecSnapshot::Many(first, count) if is_searched(search, flags, length) => {
            search.passed(Copied::array(*first, *count, length), length)
        }
        IovecSnapshot::Many(..) => Outcome::Pass,
        IovecSnapshot::Nothing => {
            search.skipped(length);
            Outcome::Pass
        }
    }
}

/// As `came`.
///
/// # Safety
/// As of `came`.
#[inline]
unsafe fn came_into(
    search: &Search<'_>,
    buffers: &[iovec],
    length: usize,
    flags: c_int,
) -> Outcome {
    if !is_searched(search, flags, length) {
        return Outcome::Pass;
    }
    // With MSG_TRUNC, the number may be TCP's by now, through a call that was not seen: then nothing
    // was written. With MSG_WAITALL, a part is written before the call waits, and may be gone.
    let is_waiting = flags & libc::MSG_WAITALL != 0 && !syscall::are_forbidden();
    if flags & libc::MSG_TRUNC != 0 || is_waiting {
        return search.passed(Copied::array(buffers.as_ptr(), buffers.len(), length), length);
    }
    // SAFETY: promised by the caller.
    search.passed(unsafe { Vectors::new(buffers, length) }, length)
}

/// Whether these bytes are to be searched; else it has done what is to be done about them.
#[inline]
fn is_searched(search: &Search<'_>, flags: c_int, length: usize) -> bool {
    if flags & (libc::MSG_PEEK | libc::MSG_ERRQUEUE) != 0 {
        // The bytes will come again, or are no bytes of the stream.
        return false;
    }
    // Only TCP discards what it is asked to truncate; other streams deliver it.
    let is_discarded = flags & libc::MSG_TRUNC != 0 && search.kind == Kind::Tcp;
    if is_discarded || flags & libc::MSG_OOB != 0 {
        search.skipped(length);
        return false;
    }
    true
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
unsafe fn each_descriptor(message: &msghdr, each: impl FnMut(c_int)) {
    let read = |at: usize, to: &mut [u8]| {
        // SAFETY: the kernel wrote the control messages, and only bytes inside them are read.
        unsafe {
            ptr::with_exposed_provenance::<u8>(at)
                .copy_to_nonoverlapping(to.as_mut_ptr(), to.len());
        }
        true
    };
    rights::each_descriptor(
        message.msg_control.expose_provenance(),
        message.msg_controllen,
        read,
        each,
    );
}
