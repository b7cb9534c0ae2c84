// SPDX-License-Identifier: Apache-2.0
//! Calls that open, duplicate and close descriptors.

use crate::calls::dispatch::{change_flags, leave};
use crate::descriptors::reserved_descriptors;
use crate::epoll::epoll_sets;
use crate::lifecycle::{closing, connection_log};
use crate::state::connection::Stage;
use crate::state::{self, DESCRIPTORS};
use crate::stream::buffers;
use core::sync::atomic::Ordering::Relaxed;
use tare_interpose::real;
use tare_interpose::types::*;
use tare_link_segment::Reason;
use tare_shm::syscall;

/// A child of vfork that duplicates a connection will start another program with it.
fn leave_for_child(fd: c_int) {
    if state::tracked(fd).is_none()
        && let Some((connection, _)) = state::known(fd)
    {
        closing::give_up(fd, connection, Reason::Spawn);
    }
}

fn fails(error: c_int) -> c_int {
    real::set_errno(error);
    -1
}

pub fn close(fd: c_int, call: impl FnOnce() -> c_int) -> c_int {
    if state::is_child() {
        return call();
    }
    if reserved_descriptors::is_hidden(fd) {
        return fails(libc::EBADF);
    }
    if fd >= 0 {
        closing::closing(fd);
    }
    call()
}

pub fn duplicate(old: c_int, call: impl FnOnce() -> c_int) -> c_int {
    epoll_sets::is_waited_for(old);
    leave_for_child(old);
    let new = call();
    if new >= 0 && !state::is_child() {
        duplicated(old, new);
    }
    new
}

fn duplicated(old: c_int, new: c_int) {
    DESCRIPTORS.duplicated(old, new);
    if let Some(set) = epoll_sets::duplicated(old, new) {
        let errno = real::errno();
        closing::leave_set(set);
        real::set_errno(errno);
    }
    if is_of_stdio(new) {
        leave(new, Reason::Stdio);
    }
}

/// libc reads and writes stdin, stdout and stderr unseen, and the program may have used these streams
/// before: nothing announces the next use.
fn is_of_stdio(fd: c_int) -> bool {
    fd <= libc::STDERR_FILENO
}

pub fn duplicate_to(old: c_int, new: c_int, call: impl FnOnce() -> c_int) -> c_int {
    epoll_sets::is_waited_for(old);
    leave_for_child(old);
    if state::is_child() {
        return call();
    }
    if reserved_descriptors::is_hidden(new) {
        return fails(libc::EBUSY);
    }
    if old != new && new >= 0 && syscall::fcntl(old, libc::F_GETFD, 0).is_ok() {
        closing::closing(new);
    }
    let new = call();
    if new >= 0 {
        duplicated(old, new);
    }
    new
}

pub fn control(
    fd: c_int,
    command: c_int,
    argument: *mut c_void,
    call: impl FnOnce() -> c_int,
) -> c_int {
    match command {
        libc::F_DUPFD | libc::F_DUPFD_CLOEXEC => duplicate(fd, call),
        // The kernel sends signals for bytes of TCP alone.
        libc::F_SETFL if argument.addr() as c_int & libc::O_ASYNC != 0 => {
            leave(fd, Reason::Signals);
            call()
        }
        libc::F_SETFL => change_flags(fd, call),
        _ => call(),
    }
}

pub fn connect(fd: c_int, address: *const sockaddr, call: impl FnOnce() -> c_int) -> c_int {
    let Some((connection, _)) = state::tracked(fd) else { return call() };
    // To no address at all: the connection ends, if there is one.
    let is_none = |to: sockaddr| c_int::from(to.sa_family) == libc::AF_UNSPEC;
    if connection.stage() != Stage::New && buffers::read_value(address).is_some_and(is_none) {
        closing::give_up(fd, connection, Reason::Disconnected);
        return call();
    }
    let result = call();
    let begins = result == 0 || matches!(real::errno(), libc::EINPROGRESS | libc::EINTR);
    if begins && connection.stage() == Stage::New {
        connection.forks.store(state::forks(), Relaxed);
    } else if begins {
        closing::connected(fd, connection);
    }
    result
}

pub fn opened(fd: c_int, domain: c_int, kind: c_int) {
    if fd >= 0 && state::statistics().is_some() {
        DESCRIPTORS.opened(fd, domain, kind);
        if is_of_stdio(fd) {
            leave(fd, Reason::Stdio);
        }
    }
}

pub fn accepted(fd: c_int, listener: c_int) -> c_int {
    if fd >= 0 && state::statistics().is_some() {
        DESCRIPTORS.accepted(fd, listener);
        // A child of a later fork has it, too, even if this process has not used it before.
        if let Some((connection, _)) = state::tracked(fd) {
            connection.forks.store(state::forks(), Relaxed);
            connection.is_accepted.store(1, Relaxed);
        }
        inherit(fd, listener);
        if is_of_stdio(fd) {
            leave(fd, Reason::Stdio);
        }
    }
    fd
}

/// A connection has the options of the socket that accepted it.
fn inherit(fd: c_int, listener: c_int) {
    if let Some((from, _)) = state::tracked(listener)
        && from.is_special.load(Relaxed) != 0
        && let Some((connection, _)) = state::tracked(fd)
    {
        connection.is_special.store(1, Relaxed);
        connection.set_stage(Stage::Never);
        connection_log::stays_tcp(fd, Reason::SocketOption);
    }
}

pub fn end_stream(stream: *mut FILE) {
    if !stream.is_null() && !state::is_child() {
        let errno = real::errno();
        // SAFETY: the program's own stream, not closed yet.
        let fd = unsafe { libc::fileno(stream) };
        real::set_errno(errno);
        if fd >= 0 {
            closing::closing(fd);
        }
    }
}
