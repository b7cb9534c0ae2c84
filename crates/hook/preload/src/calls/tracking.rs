// SPDX-License-Identifier: Apache-2.0
//! Calls that move no bytes but say what a descriptor is.

use crate::record::hook::{DESCRIPTORS, Hook};
use core::ffi::{c_int, c_long, c_uint};
use libc::FILE;
use tare_hook_segment::{Symbol, Unseen};
use tare_interpose::{Connection as _, Kind, real};

/// `accept`, `accept4`.
pub fn accepted(symbol: Symbol, listener: c_int, call: impl FnOnce() -> c_int) -> c_int {
    let fd = call();
    if fd >= 0
        && let Some(hook) = Hook::get()
    {
        DESCRIPTORS.accepted(fd, listener);
        hook.count(symbol, DESCRIPTORS.get(fd).kind());
    }
    fd
}

/// `connect`: the socket has another connection now, or will have.
pub fn connected(symbol: Symbol, fd: c_int, call: impl FnOnce() -> c_int) -> c_int {
    let result = call();
    let Some(hook) = Hook::get() else { return result };
    if result == 0 || matches!(real::errno(), libc::EINPROGRESS | libc::EINTR) {
        let entry = DESCRIPTORS.look_up(fd);
        hook.count(symbol, entry.kind());
        if let Some(connection) = DESCRIPTORS.connection(entry) {
            connection.reset();
        }
    }
    result
}

/// `socket`.
pub fn opened(symbol: Symbol, domain: c_int, kind: c_int, call: impl FnOnce() -> c_int) -> c_int {
    let fd = call();
    if fd >= 0
        && let Some(hook) = Hook::get()
    {
        DESCRIPTORS.opened(fd, domain, kind);
        hook.count(symbol, DESCRIPTORS.get(fd).kind());
    }
    fd
}

/// `socketpair`.
pub fn paired(
    symbol: Symbol,
    domain: c_int,
    kind: c_int,
    pair: *const c_int,
    call: impl FnOnce() -> c_int,
) -> c_int {
    let result = call();
    if result == 0
        && let Some(hook) = Hook::get()
    {
        // SAFETY: the call has just written two descriptors there.
        for fd in unsafe { [pair.read(), pair.add(1).read()] } {
            DESCRIPTORS.opened(fd, domain, kind);
            hook.count(symbol, DESCRIPTORS.get(fd).kind());
        }
    }
    result
}

/// `close`. Forgets first: once it is closed, another thread may have the number.
pub fn closed(symbol: Symbol, fd: c_int, call: impl FnOnce() -> c_int) -> c_int {
    let Some(hook) = Hook::get() else { return call() };
    hook.count(symbol, DESCRIPTORS.get(fd).kind());
    DESCRIPTORS.closing(fd);
    let result = call();
    DESCRIPTORS.closed(fd);
    result
}

/// `close_range`.
pub fn closed_range(
    symbol: Symbol,
    first: c_uint,
    last: c_uint,
    flags: c_int,
    call: impl FnOnce() -> c_int,
) -> c_int {
    if let Some(hook) = Hook::get() {
        hook.count(symbol, Kind::Unknown);
        if flags & libc::CLOSE_RANGE_CLOEXEC as c_int == 0 {
            DESCRIPTORS.released_range(first, last);
        }
    }
    call()
}

/// `closefrom`.
pub fn closed_from(symbol: Symbol, first: c_int, call: impl FnOnce()) {
    if let Some(hook) = Hook::get() {
        hook.count(symbol, Kind::Unknown);
        DESCRIPTORS.released_range(first.max(0) as c_uint, c_uint::MAX);
    }
    call();
}

/// `fclose` and `freopen`, which close a descriptor without a call that could be seen.
pub fn stream_closed<R>(symbol: Symbol, stream: *mut FILE, call: impl FnOnce() -> R) -> R {
    if let Some(hook) = Hook::get()
        && !stream.is_null()
    {
        let errno = real::errno();
        // SAFETY: the program's own stream, not closed yet.
        let fd = unsafe { libc::fileno(stream) };
        real::set_errno(errno);
        hook.count(symbol, DESCRIPTORS.get(fd).kind());
        DESCRIPTORS.released(fd);
    }
    call()
}

/// `fdopen`: from now on libc reads and writes unseen.
pub fn stream_opened(symbol: Symbol, fd: c_int, call: impl FnOnce() -> *mut FILE) -> *mut FILE {
    let stream = call();
    if !stream.is_null()
        && let Some(hook) = Hook::get()
    {
        let kind = DESCRIPTORS.look_up(fd).kind();
        hook.count(symbol, kind);
        if kind.is_socket() {
            hook.count_unseen(Unseen::Stdio);
        }
    }
    stream
}

/// `dup`, `dup2`, `dup3`.
pub fn duplicated(symbol: Symbol, old: c_int, call: impl FnOnce() -> c_int) -> c_int {
    let new = call();
    if new >= 0
        && let Some(hook) = Hook::get()
    {
        DESCRIPTORS.duplicated(old, new);
        hook.count(symbol, DESCRIPTORS.get(new).kind());
    }
    new
}

/// `fcntl`.
pub fn controlled(
    symbol: Symbol,
    fd: c_int,
    command: c_int,
    call: impl FnOnce() -> c_int,
) -> c_int {
    if matches!(command, libc::F_DUPFD | libc::F_DUPFD_CLOEXEC) {
        duplicated(symbol, fd, call)
    } else {
        call()
    }
}

/// `syscall`, for the calls that change what is known.
pub fn system_call(number: c_long, first: usize, second: usize, third: usize) {
    let Some(hook) = Hook::get() else { return };
    match number {
        libc::SYS_io_uring_setup => hook.count_unseen(Unseen::IoUring),
        libc::SYS_close => DESCRIPTORS.released(first as c_int),
        libc::SYS_close_range if third & libc::CLOSE_RANGE_CLOEXEC as usize == 0 => {
            DESCRIPTORS.released_range(first as c_uint, second as c_uint);
        }
        _ => {}
    }
}
