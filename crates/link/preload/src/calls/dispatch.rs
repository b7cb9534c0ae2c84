// SPDX-License-Identifier: Apache-2.0
//! Whether an intercepted call goes to the link of its connection or to the kernel.

use crate::epoll::epoll_sets;
use crate::kernel;
use crate::lifecycle::{closing, rendezvous, service_thread};
use crate::links::slots::{self, Slot};
use crate::state;
use crate::state::connection::{Connection, Stage};
use crate::stream::buffers::{self, Buffers};
use crate::stream::send_source::FilePart;
use crate::stream::{receive, send};
use core::mem::MaybeUninit;
use core::sync::atomic::Ordering::Relaxed;
use tare_interpose::real;
use tare_interpose::types::*;
use tare_link_segment::Reason;
use tare_shm::syscall::Errno;

/// Calls the next definition of a function of libc.
macro_rules! next {
    ($name:ident($($argument:expr),*)) => {
        // SAFETY: the arguments are the program's own, handed on as they are.
        unsafe { real::$name($($argument),*) }
    };
}
pub(crate) use next;

/// Bytes that the kernel moves at most in one call.
const MOST_AT_ONCE: usize = 0x7fff_f000;

/// How a call on a connection is made.
enum Route {
    /// By the kernel, and of no concern.
    Free,
    /// By the kernel, while the connection stays TCP.
    Counted(&'static Connection),
    Linked(&'static Slot),
}

fn route(fd: c_int, sends: bool) -> Route {
    let Some((connection, _)) = state::tracked(fd) else { return Route::Free };
    loop {
        if connection.stage() == Stage::Never || state::is_off() {
            return Route::Free;
        }
        if let Some(slot) = rendezvous::try_link(fd, connection, sends) {
            service_thread::ensure();
            return Route::Linked(slot);
        }
        match connection.stage() {
            Stage::Linked => {
                // Another thread has just linked it, or closes it.
                match slots::enter(connection.slot.load(Relaxed)) {
                    Some(slot) => return Route::Linked(slot),
                    None => return Route::Free,
                }
            }
            _ if connection.begin() => return Route::Counted(connection),
            _ => kernel::yield_now(),
        }
    }
}

/// The link of a connection that has one; its user must `leave` it.
pub fn linked(fd: c_int) -> Option<&'static Slot> {
    let (connection, _) = state::tracked(fd)?;
    let is_linked = connection.stage() == Stage::Linked && !state::is_off();
    if is_linked { slots::enter(connection.slot.load(Relaxed)) } else { None }
}

fn count_kernel_call(connection: &Connection, sends: bool, result: ssize_t) -> ssize_t {
    connection.end();
    if result > 0 {
        connection.sends.fetch_add(u32::from(sends), Relaxed);
        connection.has_received.store(u32::from(!sends), Relaxed);
        connection.bytes.fetch_add(result as u64, Relaxed);
    }
    result
}

/// Whether a call waits for all of the bytes that it peeks at: the kernel does that.
fn peeks_until_all(flags: c_int) -> bool {
    const ALL: c_int = libc::MSG_PEEK | libc::MSG_WAITALL;
    flags & (ALL | libc::MSG_DONTWAIT) == ALL
}

/// A call that receives into `buffers`, `None` if the kernel should judge them.
pub fn incoming(
    fd: c_int,
    buffers: impl FnOnce() -> Option<Buffers>,
    flags: c_int,
    call: impl Fn() -> ssize_t,
) -> ssize_t {
    // Other flags are of no byte of the stream: out-of-band data, the queue of errors.
    if flags & !receive::FLAGS != 0 {
        return call();
    }
    match route(fd, false) {
        Route::Free => call(),
        Route::Counted(connection) => count_kernel_call(connection, false, call()),
        Route::Linked(slot) => {
            let Some(buffers) = buffers() else {
                slot.leave();
                return call();
            };
            let got = if buffers.length() > 0 {
                receive::receive(fd, slot, &buffers, flags)
            } else {
                receive::await_any(fd, slot, flags)
            };
            let is_late = got.is_ok_and(|got| got < buffers.length()) && peeks_until_all(flags);
            let waits = is_late && !slot.is_nonblocking(fd);
            slot.leave();
            if waits {
                leave(fd, Reason::PeekAll);
                return call();
            }
            match got {
                Ok(got) => got as ssize_t,
                Err(Errno(error)) => {
                    real::set_errno(error);
                    -1
                }
            }
        }
    }
}

/// A call that sends `buffers`.
pub fn outgoing(
    fd: c_int,
    buffers: impl FnOnce() -> Option<Buffers>,
    flags: c_int,
    call: impl Fn() -> ssize_t,
) -> ssize_t {
    match route(fd, true) {
        Route::Free => call(),
        Route::Counted(connection) => count_kernel_call(connection, true, call()),
        Route::Linked(slot) => {
            let buffers = if flags & !send::FLAGS == 0 { buffers() } else { None };
            send_linked(slot, buffers.as_ref(), flags, &call)
        }
    }
}

fn send_linked(
    slot: &Slot,
    buffers: Option<&Buffers>,
    flags: c_int,
    call: &dyn Fn() -> ssize_t,
) -> ssize_t {
    let result = match buffers.filter(|buffers| buffers.length() > 0) {
        None => send::through_kernel(slot, flags, call),
        Some(buffers) => send::send(slot, buffers, flags, &|fd, done| {
            let rest = buffers.part(done, usize::MAX);
            // SAFETY: zeros are a message.
            let mut message: msghdr = unsafe { MaybeUninit::zeroed().assume_init() };
            message.msg_iov = rest.as_ptr().cast_mut();
            message.msg_iovlen = rest.len();
            next!(sendmsg(fd, &raw const message, flags))
        }),
    };
    slot.leave();
    result
}

/// A call that sends a part of a file, which begins at `offset`; without one the kernel knows.
pub fn send_file(
    fd: c_int,
    input: c_int,
    offset: *mut off_t,
    count: size_t,
    call: &dyn Fn(c_int, *mut off_t, size_t) -> ssize_t,
) -> ssize_t {
    // The kernel moves bytes of a connection to a pipe.
    if offset.is_null() && state::tracked(input).is_some() {
        leave(input, Reason::Kernel);
    }
    let file =
        || FilePart::new(input, buffers::read_value(offset.cast_const())?, count.min(MOST_AT_ONCE));
    let Some(file) = (if offset.is_null() || state::tracked(fd).is_none() { None } else { file() })
    else {
        return unbuffered(fd, || call(fd, offset, count));
    };
    match route(fd, true) {
        Route::Free => call(fd, offset, count),
        Route::Counted(connection) => count_kernel_call(connection, true, call(fd, offset, count)),
        Route::Linked(slot) => {
            let result = send::send(slot, &file, 0, &|fd, done| {
                let mut place = file.place(done);
                call(fd, &raw mut place, count - done)
            });
            slot.leave();
            if result > 0 && !buffers::write_value(offset, file.place(result as usize)) {
                real::set_errno(libc::EFAULT);
                return -1;
            }
            result
        }
    }
}

/// A call that moves bytes without a buffer of the program's into a connection.
pub fn unbuffered(fd: c_int, call: impl Fn() -> ssize_t) -> ssize_t {
    outgoing(fd, || None, 0, call)
}

/// For `readv`: fewer bytes than there is room for are always a right answer.
pub fn vectors(first: *const iovec, count: c_int) -> Option<Buffers> {
    let count = usize::try_from(count).ok().filter(|count| *count <= libc::UIO_MAXIOV as usize)?;
    Buffers::array(first, count.min(buffers::MOST))
}

pub fn all_vectors(first: *const iovec, count: usize) -> Option<Buffers> {
    Buffers::array(first, count)
}

/// Something that the library does not carry begins with this connection: it is TCP's for good.
pub fn leave(fd: c_int, reason: Reason) {
    epoll_sets::is_waited_for(fd);
    if let Some((connection, _)) = state::tracked(fd) {
        let errno = real::errno();
        closing::give_up(fd, connection, reason);
        real::set_errno(errno);
    }
}

/// A call that may change whether others wait.
pub fn change_flags(fd: c_int, call: impl FnOnce() -> c_int) -> c_int {
    let result = call();
    if let Some(slot) = linked(fd) {
        slot.blocking_mode.store(0, Relaxed);
        slot.leave();
    }
    result
}
