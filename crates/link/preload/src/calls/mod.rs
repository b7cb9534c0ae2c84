// SPDX-License-Identifier: Apache-2.0
//! The functions of libc that the library intercepts: one file per group of them.

mod deadline;
mod descriptor_calls;
mod dispatch;
mod epoll_control;
mod epoll_wait;
pub mod exit;
pub mod forks;
pub mod formatted;
mod forwarded;
mod io_uring;
pub mod mapping_calls;
mod messages;
mod options;
mod polls;
pub mod privileges;
pub mod programs;
pub mod raw_syscalls;
mod selects;
mod socket_options;

use crate::calls::deadline::Deadline;
use crate::calls::descriptor_calls::{
    accepted, close, connect, control, duplicate, duplicate_to, end_stream, opened,
};
use crate::calls::dispatch::{
    all_vectors, incoming, leave, next, outgoing, send_file, unbuffered, vectors,
};
use crate::descriptors::reserved_descriptors;
use crate::epoll::epoll_sets;
use crate::lifecycle::closing;
use crate::state::is_child;
use crate::stream::buffers::Buffers;
use core::ptr;
use tare_interpose::types::*;
use tare_interpose::{Interposer, real};
use tare_link_segment::Reason;
use tare_shm::syscall;

pub struct Calls;

/// Functions that only differ in what they do with the program's own call, `call()`.
macro_rules! calls {
    ($(fn $name:ident($($argument:ident: $type:ty),*) -> $result:ty =
        |$call:ident| $body:expr;)*) => {
        $(unsafe fn $name($($argument: $type),*) -> $result {
            let $call = || next!($name($($argument),*));
            $body
        })*
    };
}

fn one(buffer: *const c_void, length: size_t) -> Option<Buffers> {
    Some(Buffers::one(buffer, length))
}

/// The flags of `preadv2` as flags of `recvmsg`.
fn no_wait(flags: c_int) -> c_int {
    if flags & libc::RWF_NOWAIT != 0 { libc::MSG_DONTWAIT } else { 0 }
}

fn milliseconds(timeout: c_int) -> Option<Deadline> {
    Some(Deadline::after_milliseconds(timeout))
}

fn created(set: c_int) -> c_int {
    epoll_sets::created(set);
    set
}

impl Interposer for Calls {
    calls! {
        fn read(fd: c_int, buffer: *mut c_void, length: size_t) -> ssize_t =
            |call| incoming(fd, || one(buffer, length), 0, call);
        fn __read(fd: c_int, buffer: *mut c_void, length: size_t) -> ssize_t =
            |call| incoming(fd, || one(buffer, length), 0, call);
        fn __read_chk(fd: c_int, buffer: *mut c_void, length: size_t, room: size_t) -> ssize_t =
            |call| if length > room {
                call()
            } else {
                incoming(fd, || one(buffer, length), 0, call)
            };
        fn readv(fd: c_int, first: *const iovec, count: c_int) -> ssize_t =
            |call| incoming(fd, || vectors(first, count), 0, call);
        fn preadv2(fd: c_int, first: *const iovec, count: c_int, offset: off_t,
            flags: c_int) -> ssize_t =
            |call| if offset == -1 {
                incoming(fd, || vectors(first, count), no_wait(flags), call)
            } else {
                call()
            };
        fn preadv64v2(fd: c_int, first: *const iovec, count: c_int, offset: off_t,
            flags: c_int) -> ssize_t =
            |call| if offset == -1 {
                incoming(fd, || vectors(first, count), no_wait(flags), call)
            } else {
                call()
            };
        fn recv(fd: c_int, buffer: *mut c_void, length: size_t, flags: c_int) -> ssize_t =
            |call| incoming(fd, || one(buffer, length), flags, call);
        fn __recv_chk(fd: c_int, buffer: *mut c_void, length: size_t, room: size_t,
            flags: c_int) -> ssize_t =
            |call| if length > room {
                call()
            } else {
                incoming(fd, || one(buffer, length), flags, call)
            };
        fn recvmsg(fd: c_int, message: *mut msghdr, flags: c_int) -> ssize_t =
            |call| messages::receive_message(fd, message, flags, call);
        fn write(fd: c_int, buffer: *const c_void, length: size_t) -> ssize_t =
            |call| outgoing(fd, || one(buffer, length), 0, call);
        fn __write(fd: c_int, buffer: *const c_void, length: size_t) -> ssize_t =
            |call| outgoing(fd, || one(buffer, length), 0, call);
        fn writev(fd: c_int, first: *const iovec, count: c_int) -> ssize_t =
            |call| outgoing(fd, || all_vectors(first, usize::try_from(count).ok()?), 0, call);
        fn pwritev2(fd: c_int, first: *const iovec, count: c_int, offset: off_t,
            flags: c_int) -> ssize_t =
            |call| if offset == -1 { unbuffered(fd, call) } else { call() };
        fn pwritev64v2(fd: c_int, first: *const iovec, count: c_int, offset: off_t,
            flags: c_int) -> ssize_t =
            |call| if offset == -1 { unbuffered(fd, call) } else { call() };
        fn send(fd: c_int, buffer: *const c_void, length: size_t, flags: c_int) -> ssize_t =
            |call| outgoing(fd, || one(buffer, length), flags, call);
        fn __send(fd: c_int, buffer: *const c_void, length: size_t, flags: c_int) -> ssize_t =
            |call| outgoing(fd, || one(buffer, length), flags, call);
        fn sendto(fd: c_int, buffer: *const c_void, length: size_t, flags: c_int,
            address: *const sockaddr, address_length: socklen_t) -> ssize_t =
            |call| outgoing(fd, || one(buffer, length).filter(|_| address.is_null()), flags, call);
        fn sendmsg(fd: c_int, message: *const msghdr, flags: c_int) -> ssize_t =
            |call| messages::send_message(fd, message, flags, call);
        fn splice(input: c_int, input_offset: *mut off64_t, output: c_int,
            output_offset: *mut off64_t, length: size_t, flags: c_uint) -> ssize_t =
            |call| { leave(input, Reason::Kernel); unbuffered(output, call) };
        fn accept(fd: c_int, address: *mut sockaddr, length: *mut socklen_t) -> c_int =
            |call| accepted(call(), fd);
        fn accept4(fd: c_int, address: *mut sockaddr, length: *mut socklen_t,
            flags: c_int) -> c_int =
            |call| accepted(call(), fd);
        fn connect(fd: c_int, address: *const sockaddr, length: socklen_t) -> c_int =
            |call| connect(fd, address, call);
        fn __connect(fd: c_int, address: *const sockaddr, length: socklen_t) -> c_int =
            |call| connect(fd, address, call);
        fn close(fd: c_int) -> c_int = |call| close(fd, call);
        fn __close(fd: c_int) -> c_int = |call| close(fd, call);
        fn dup(fd: c_int) -> c_int = |call| duplicate(fd, call);
        fn dup2(old: c_int, new: c_int) -> c_int = |call| duplicate_to(old, new, call);
        fn __dup2(old: c_int, new: c_int) -> c_int = |call| duplicate_to(old, new, call);
        fn dup3(old: c_int, new: c_int, flags: c_int) -> c_int =
            |call| if old == new || flags & !libc::O_CLOEXEC != 0 {
                call()
            } else {
                duplicate_to(old, new, call)
            };
        fn fcntl(fd: c_int, command: c_int, argument: *mut c_void) -> c_int =
            |call| control(fd, command, argument, call);
        fn __fcntl(fd: c_int, command: c_int, argument: *mut c_void) -> c_int =
            |call| control(fd, command, argument, call);
        fn fcntl64(fd: c_int, command: c_int, argument: *mut c_void) -> c_int =
            |call| control(fd, command, argument, call);
        fn fclose(stream: *mut FILE) -> c_int = |call| { end_stream(stream); call() };
        fn freopen(path: *const c_char, mode: *const c_char, stream: *mut FILE) -> *mut FILE =
            |call| { end_stream(stream); call() };
        fn freopen64(path: *const c_char, mode: *const c_char, stream: *mut FILE) -> *mut FILE =
            |call| { end_stream(stream); call() };
        // From now on libc reads and writes unseen.
        fn fdopen(fd: c_int, mode: *const c_char) -> *mut FILE = |call| { leave(fd, Reason::Stdio); call() };
        fn poll(places: *mut pollfd, count: nfds_t, timeout: c_int) -> c_int =
            |call| polls::poll(places, count, || milliseconds(timeout), ptr::null())
                .unwrap_or_else(call);
        fn __poll_chk(places: *mut pollfd, count: nfds_t, timeout: c_int, room: size_t) -> c_int =
            |call| if count as usize > room / size_of::<pollfd>() {
                call()
            } else {
                polls::poll(places, count, || milliseconds(timeout), ptr::null())
                    .unwrap_or_else(call)
            };
        fn ppoll(places: *mut pollfd, count: nfds_t, timeout: *const timespec,
            mask: *const sigset_t) -> c_int =
            |call| polls::poll(places, count, || Deadline::after(timeout), mask)
                .unwrap_or_else(call);
        fn __ppoll_chk(places: *mut pollfd, count: nfds_t, timeout: *const timespec,
            mask: *const sigset_t, room: size_t) -> c_int =
            |call| if count as usize > room / size_of::<pollfd>() {
                call()
            } else {
                polls::poll(places, count, || Deadline::after(timeout), mask).unwrap_or_else(call)
            };
        fn epoll_create(size: c_int) -> c_int = |call| created(call());
        fn epoll_create1(flags: c_int) -> c_int = |call| created(call());
        fn epoll_ctl(set: c_int, operation: c_int, fd: c_int, event: *mut epoll_event) -> c_int =
            |call| epoll_control::control(set, operation, fd, event, call);
        fn shutdown(fd: c_int, how: c_int) -> c_int = |call| options::shutdown(fd, how, call);
        fn setsockopt(fd: c_int, level: c_int, name: c_int, value: *const c_void,
            length: socklen_t) -> c_int =
            |call| {
                options::set(fd, level, name);
                let result = call();
                if result == 0 && (level, name) == (libc::SOL_SOCKET, libc::SO_LINGER) {
                    options::lingers(fd, value.cast());
                }
                result
            };
        fn getsockopt(fd: c_int, level: c_int, name: c_int, value: *mut c_void,
            length: *mut socklen_t) -> c_int =
            |call| { options::ask(fd, level, name); call() };
        fn ioctl(fd: c_int, request: c_ulong, argument: *mut c_void) -> c_int =
            |call| options::control(fd, request, argument, call);
    }

    unsafe fn recvfrom(
        fd: c_int,
        buffer: *mut c_void,
        length: size_t,
        flags: c_int,
        address: *mut sockaddr,
        address_length: *mut socklen_t,
    ) -> ssize_t {
        let mut by_ring = false;
        let result = incoming(
            fd,
            || {
                by_ring = true;
                one(buffer, length)
            },
            flags,
            || next!(recvfrom(fd, buffer, length, flags, address, address_length)),
        );
        if by_ring {
            // SAFETY: the program's own.
            return unsafe { messages::without_peer_address(result, address, address_length) };
        }
        result
    }

    unsafe fn __recvfrom_chk(
        fd: c_int,
        buffer: *mut c_void,
        length: size_t,
        room: size_t,
        flags: c_int,
        address: *mut sockaddr,
        address_length: *mut socklen_t,
    ) -> ssize_t {
        if length > room {
            return next!(__recvfrom_chk(fd, buffer, length, room, flags, address, address_length));
        }
        // SAFETY: the caller's own arguments.
        unsafe { Self::recvfrom(fd, buffer, length, flags, address, address_length) }
    }

    unsafe fn recvmmsg(
        fd: c_int,
        messages: *mut mmsghdr,
        count: c_uint,
        flags: c_int,
        timeout: *mut timespec,
    ) -> c_int {
        messages::receive_messages(fd, messages, count, flags, timeout, || {
            next!(recvmmsg(fd, messages, count, flags, timeout))
        })
    }

    unsafe fn sendmmsg(fd: c_int, messages: *mut mmsghdr, count: c_uint, flags: c_int) -> c_int {
        messages::send_messages(fd, messages, count, flags, || {
            next!(sendmmsg(fd, messages, count, flags))
        })
    }

    unsafe fn sendfile(out: c_int, input: c_int, offset: *mut off_t, count: size_t) -> ssize_t {
        send_file(out, input, offset, count, &|out, offset, count| {
            next!(sendfile(out, input, offset, count))
        })
    }

    unsafe fn sendfile64(out: c_int, input: c_int, offset: *mut off_t, count: size_t) -> ssize_t {
        send_file(out, input, offset, count, &|out, offset, count| {
            next!(sendfile64(out, input, offset, count))
        })
    }

    unsafe fn socket(domain: c_int, kind: c_int, protocol: c_int) -> c_int {
        let fd = next!(socket(domain, kind, protocol));
        opened(fd, domain, kind);
        fd
    }

    unsafe fn socketpair(domain: c_int, kind: c_int, protocol: c_int, pair: *mut c_int) -> c_int {
        let result = next!(socketpair(domain, kind, protocol, pair));
        if result == 0 {
            // SAFETY: the call has just written two descriptors there.
            for fd in unsafe { [pair.read(), pair.add(1).read()] } {
                opened(fd, domain, kind);
            }
        }
        result
    }

    unsafe fn close_range(first: c_uint, last: c_uint, flags: c_int) -> c_int {
        if flags & libc::CLOSE_RANGE_UNSHARE as c_int != 0 && !is_child() {
            let rest = flags & !(libc::CLOSE_RANGE_UNSHARE as c_int);
            // Nothing is closed by this call, and a refused one has the program's flags.
            let unshares = || next!(close_range(c_uint::MAX, c_uint::MAX, flags));
            if first > last || privileges::around(unshares) != 0 {
                return next!(close_range(first, last, flags));
            }
            // SAFETY: the program's own arguments.
            return unsafe { Self::close_range(first, last, rest) };
        }
        if is_child() || first > last || flags & libc::CLOSE_RANGE_CLOEXEC as c_int != 0 {
            return next!(close_range(first, last, flags));
        }
        // Nothing is closed by a call that the kernel refuses: of no descriptor, to see.
        const NONE: c_uint = c_uint::MAX;
        if next!(close_range(NONE, NONE, flags)) != 0 {
            return next!(close_range(first, last, flags));
        }
        closing::closing_range(first, last);
        closing::ranges(first, last, |from, to| next!(close_range(from, to, flags)))
    }

    unsafe fn closefrom(first: c_int) {
        if is_child() {
            return next!(closefrom(first));
        }
        let first = first.max(0) as c_uint;
        closing::closing_range(first, c_uint::MAX);
        let done = closing::ranges(first, c_uint::MAX, |from, to| next!(close_range(from, to, 0)));
        if done != 0 {
            // A kernel without close_range: one by one, but for what is hidden.
            let most = syscall::limit(libc::RLIMIT_NOFILE).unwrap_or(1024).min(1 << 20) as c_int;
            for fd in (first as c_int..most).filter(|fd| !reserved_descriptors::is_hidden(*fd)) {
                next!(close(fd));
            }
        }
    }

    unsafe fn select(
        count: c_int,
        read: *mut fd_set,
        write: *mut fd_set,
        other: *mut fd_set,
        timeout: *mut timeval,
    ) -> c_int {
        let count = selects::limit(count);
        let mut used = None;
        let mut deadline = || {
            if timeout.is_null() {
                return Deadline::after(ptr::null());
            }
            // SAFETY: the program's own time.
            let time = unsafe { timeout.read() };
            let nanoseconds = time.tv_usec.checked_mul(1000)?;
            let time = timespec { tv_sec: time.tv_sec, tv_nsec: nanoseconds };
            used = Deadline::after(&raw const time);
            used
        };
        // SAFETY: the program's own sets.
        let done =
            unsafe { selects::select(count, [read, write, other], &mut deadline, ptr::null()) };
        let Some(result) = done else { return next!(select(count, read, write, other, timeout)) };
        if let Some(deadline) = used {
            let left = deadline.rest();
            // SAFETY: the program's own time.
            unsafe {
                (*timeout).tv_sec = (left / 1_000_000_000) as i64;
                (*timeout).tv_usec = (left % 1_000_000_000 / 1000) as i64;
            }
        }
        result
    }

    unsafe fn pselect(
        count: c_int,
        read: *mut fd_set,
        write: *mut fd_set,
        other: *mut fd_set,
        timeout: *const timespec,
        mask: *const sigset_t,
    ) -> c_int {
        let count = selects::limit(count);
        let mut deadline = || Deadline::after(timeout);
        // SAFETY: the program's own sets.
        unsafe { selects::select(count, [read, write, other], &mut deadline, mask) }
            .unwrap_or_else(|| next!(pselect(count, read, write, other, timeout, mask)))
    }

    unsafe fn epoll_wait(
        set: c_int,
        events: *mut epoll_event,
        most: c_int,
        timeout: c_int,
    ) -> c_int {
        let wait = epoll_wait::Wait {
            returns: timeout == 0,
            deadline: &|| milliseconds(timeout),
            call: &|events, most, time| {
                next!(epoll_wait(set, events, most, time.milliseconds(timeout)))
            },
        };
        epoll_wait::wait(set, events, most, &wait)
    }

    unsafe fn epoll_pwait(
        set: c_int,
        events: *mut epoll_event,
        most: c_int,
        timeout: c_int,
        mask: *const sigset_t,
    ) -> c_int {
        let wait = epoll_wait::Wait {
            returns: timeout == 0,
            deadline: &|| milliseconds(timeout),
            call: &|events, most, time| {
                next!(epoll_pwait(set, events, most, time.milliseconds(timeout), mask))
            },
        };
        epoll_wait::wait(set, events, most, &wait)
    }

    unsafe fn epoll_pwait2(
        set: c_int,
        events: *mut epoll_event,
        most: c_int,
        timeout: *const timespec,
        mask: *const sigset_t,
    ) -> c_int {
        epoll_wait::until(set, events, most, timeout, &|events, most, timeout| {
            next!(epoll_pwait2(set, events, most, timeout, mask))
        })
    }
}
