// SPDX-License-Identifier: Apache-2.0
//! The functions of libc that the hook intercepts: what each does, is in `receive`, `send` and
//! `tracking`.

mod block;
mod chunked_send;
pub mod receive;
mod restrictions;
pub mod send;
mod socket;
pub mod tracking;

use tare_hook_segment::Symbol;
use tare_interpose::types::*;
use tare_interpose::{Interposer, Observer, real};

pub struct Calls;

/// Calls the next definition, in a function of the trait.
macro_rules! next {
    ($name:ident($($argument:expr),*)) => {
        // SAFETY: the arguments are the program's own, handed on as they are.
        unsafe { real::$name($($argument),*) }
    };
}

impl Interposer for Calls {
    unsafe fn read(fd: c_int, buffer: *mut c_void, length: size_t) -> ssize_t {
        receive::buffer(Symbol::read, fd, buffer, length, 0, || next!(read(fd, buffer, length)))
    }

    unsafe fn __read(fd: c_int, buffer: *mut c_void, length: size_t) -> ssize_t {
        receive::buffer(Symbol::__read, fd, buffer, length, 0, || next!(__read(fd, buffer, length)))
    }

    unsafe fn __read_chk(fd: c_int, buffer: *mut c_void, length: size_t, room: size_t) -> ssize_t {
        receive::buffer(Symbol::__read_chk, fd, buffer, length, 0, || {
            next!(__read_chk(fd, buffer, length, room))
        })
    }

    unsafe fn readv(fd: c_int, vectors: *const iovec, count: c_int) -> ssize_t {
        receive::vectors(Symbol::readv, fd, vectors, count, || next!(readv(fd, vectors, count)))
    }

    unsafe fn preadv2(
        fd: c_int,
        vectors: *const iovec,
        count: c_int,
        offset: off_t,
        flags: c_int,
    ) -> ssize_t {
        if offset != -1 {
            return next!(preadv2(fd, vectors, count, offset, flags));
        }
        receive::vectors(Symbol::preadv2, fd, vectors, count, || {
            next!(preadv2(fd, vectors, count, offset, flags))
        })
    }

    unsafe fn preadv64v2(
        fd: c_int,
        vectors: *const iovec,
        count: c_int,
        offset: off_t,
        flags: c_int,
    ) -> ssize_t {
        if offset != -1 {
            return next!(preadv64v2(fd, vectors, count, offset, flags));
        }
        receive::vectors(Symbol::preadv64v2, fd, vectors, count, || {
            next!(preadv64v2(fd, vectors, count, offset, flags))
        })
    }

    unsafe fn recv(fd: c_int, buffer: *mut c_void, length: size_t, flags: c_int) -> ssize_t {
        receive::buffer(Symbol::recv, fd, buffer, length, flags, || {
            next!(recv(fd, buffer, length, flags))
        })
    }

    unsafe fn __recv_chk(
        fd: c_int,
        buffer: *mut c_void,
        length: size_t,
        room: size_t,
        flags: c_int,
    ) -> ssize_t {
        receive::buffer(Symbol::__recv_chk, fd, buffer, length, flags, || {
            next!(__recv_chk(fd, buffer, length, room, flags))
        })
    }

    unsafe fn recvfrom(
        fd: c_int,
        buffer: *mut c_void,
        length: size_t,
        flags: c_int,
        address: *mut sockaddr,
        address_length: *mut socklen_t,
    ) -> ssize_t {
        receive::buffer(Symbol::recvfrom, fd, buffer, length, flags, || {
            next!(recvfrom(fd, buffer, length, flags, address, address_length))
        })
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
        receive::buffer(Symbol::__recvfrom_chk, fd, buffer, length, flags, || {
            next!(__recvfrom_chk(fd, buffer, length, room, flags, address, address_length))
        })
    }

    unsafe fn recvmsg(fd: c_int, message: *mut msghdr, flags: c_int) -> ssize_t {
        receive::message(Symbol::recvmsg, fd, message, flags, || next!(recvmsg(fd, message, flags)))
    }

    unsafe fn recvmmsg(
        fd: c_int,
        messages: *mut mmsghdr,
        count: c_uint,
        flags: c_int,
        timeout: *mut timespec,
    ) -> c_int {
        receive::messages(Symbol::recvmmsg, fd, messages, flags, || {
            next!(recvmmsg(fd, messages, count, flags, timeout))
        })
    }

    unsafe fn write(fd: c_int, buffer: *const c_void, length: size_t) -> ssize_t {
        send::buffer(Symbol::write, fd, buffer, length, 0, |buffer, length| {
            next!(write(fd, buffer, length))
        })
    }

    unsafe fn __write(fd: c_int, buffer: *const c_void, length: size_t) -> ssize_t {
        send::buffer(Symbol::__write, fd, buffer, length, 0, |buffer, length| {
            next!(__write(fd, buffer, length))
        })
    }

    unsafe fn writev(fd: c_int, vectors: *const iovec, count: c_int) -> ssize_t {
        send::array_of(Symbol::writev, fd, vectors, count, |vectors, count| {
            next!(writev(fd, vectors, count))
        })
    }

    unsafe fn pwritev2(
        fd: c_int,
        vectors: *const iovec,
        count: c_int,
        offset: off_t,
        flags: c_int,
    ) -> ssize_t {
        if offset != -1 {
            return next!(pwritev2(fd, vectors, count, offset, flags));
        }
        send::array_of(Symbol::pwritev2, fd, vectors, count, |vectors, count| {
            next!(pwritev2(fd, vectors, count, offset, flags))
        })
    }

    unsafe fn pwritev64v2(
        fd: c_int,
        vectors: *const iovec,
        count: c_int,
        offset: off_t,
        flags: c_int,
    ) -> ssize_t {
        if offset != -1 {
            return next!(pwritev64v2(fd, vectors, count, offset, flags));
        }
        send::array_of(Symbol::pwritev64v2, fd, vectors, count, |vectors, count| {
            next!(pwritev64v2(fd, vectors, count, offset, flags))
        })
    }

    unsafe fn send(fd: c_int, buffer: *const c_void, length: size_t, flags: c_int) -> ssize_t {
        send::buffer(Symbol::send, fd, buffer, length, flags, |buffer, length| {
            next!(send(fd, buffer, length, flags))
        })
    }

    unsafe fn __send(fd: c_int, buffer: *const c_void, length: size_t, flags: c_int) -> ssize_t {
        send::buffer(Symbol::__send, fd, buffer, length, flags, |buffer, length| {
            next!(__send(fd, buffer, length, flags))
        })
    }

    unsafe fn sendto(
        fd: c_int,
        buffer: *const c_void,
        length: size_t,
        flags: c_int,
        address: *const sockaddr,
        address_length: socklen_t,
    ) -> ssize_t {
        send::buffer(Symbol::sendto, fd, buffer, length, flags, |buffer, length| {
            next!(sendto(fd, buffer, length, flags, address, address_length))
        })
    }

    unsafe fn sendmsg(fd: c_int, message: *const msghdr, flags: c_int) -> ssize_t {
        send::message(Symbol::sendmsg, fd, message, flags, |message| {
            next!(sendmsg(fd, message, flags))
        })
    }

    unsafe fn sendmmsg(fd: c_int, messages: *mut mmsghdr, count: c_uint, flags: c_int) -> c_int {
        send::messages(Symbol::sendmmsg, fd, messages, count, flags, |count| {
            next!(sendmmsg(fd, messages, count, flags))
        })
    }

    unsafe fn sendfile(out: c_int, input: c_int, offset: *mut off_t, count: size_t) -> ssize_t {
        send::file(Symbol::sendfile, out, || next!(sendfile(out, input, offset, count)))
    }

    unsafe fn sendfile64(out: c_int, input: c_int, offset: *mut off_t, count: size_t) -> ssize_t {
        send::file(Symbol::sendfile64, out, || next!(sendfile64(out, input, offset, count)))
    }

    unsafe fn accept(fd: c_int, address: *mut sockaddr, length: *mut socklen_t) -> c_int {
        tracking::accepted(Symbol::accept, fd, || next!(accept(fd, address, length)))
    }

    unsafe fn accept4(
        fd: c_int,
        address: *mut sockaddr,
        length: *mut socklen_t,
        flags: c_int,
    ) -> c_int {
        tracking::accepted(Symbol::accept4, fd, || next!(accept4(fd, address, length, flags)))
    }

    unsafe fn connect(fd: c_int, address: *const sockaddr, length: socklen_t) -> c_int {
        tracking::connected(Symbol::connect, fd, || next!(connect(fd, address, length)))
    }

    unsafe fn __connect(fd: c_int, address: *const sockaddr, length: socklen_t) -> c_int {
        tracking::connected(Symbol::__connect, fd, || next!(__connect(fd, address, length)))
    }

    unsafe fn socket(domain: c_int, kind: c_int, protocol: c_int) -> c_int {
        tracking::opened(Symbol::socket, domain, kind, || next!(socket(domain, kind, protocol)))
    }

    unsafe fn socketpair(domain: c_int, kind: c_int, protocol: c_int, pair: *mut c_int) -> c_int {
        tracking::paired(Symbol::socketpair, domain, kind, pair, || {
            next!(socketpair(domain, kind, protocol, pair))
        })
    }

    unsafe fn close(fd: c_int) -> c_int {
        tracking::closed(Symbol::close, fd, || next!(close(fd)))
    }

    unsafe fn __close(fd: c_int) -> c_int {
        tracking::closed(Symbol::__close, fd, || next!(__close(fd)))
    }

    unsafe fn close_range(first: c_uint, last: c_uint, flags: c_int) -> c_int {
        tracking::closed_range(Symbol::close_range, first, last, flags, || {
            next!(close_range(first, last, flags))
        })
    }

    unsafe fn closefrom(first: c_int) {
        tracking::closed_from(Symbol::closefrom, first, || next!(closefrom(first)))
    }

    unsafe fn fclose(stream: *mut FILE) -> c_int {
        tracking::stream_closed(Symbol::fclose, stream, || next!(fclose(stream)))
    }

    unsafe fn freopen(path: *const c_char, mode: *const c_char, stream: *mut FILE) -> *mut FILE {
        tracking::stream_closed(Symbol::freopen, stream, || next!(freopen(path, mode, stream)))
    }

    unsafe fn freopen64(path: *const c_char, mode: *const c_char, stream: *mut FILE) -> *mut FILE {
        tracking::stream_closed(Symbol::freopen64, stream, || next!(freopen64(path, mode, stream)))
    }

    unsafe fn dup(fd: c_int) -> c_int {
        tracking::duplicated(Symbol::dup, fd, || next!(dup(fd)))
    }

    unsafe fn dup2(old: c_int, new: c_int) -> c_int {
        tracking::duplicated(Symbol::dup2, old, || next!(dup2(old, new)))
    }

    unsafe fn __dup2(old: c_int, new: c_int) -> c_int {
        tracking::duplicated(Symbol::__dup2, old, || next!(__dup2(old, new)))
    }

    unsafe fn dup3(old: c_int, new: c_int, flags: c_int) -> c_int {
        tracking::duplicated(Symbol::dup3, old, || next!(dup3(old, new, flags)))
    }

    unsafe fn fcntl(fd: c_int, command: c_int, argument: *mut c_void) -> c_int {
        tracking::controlled(Symbol::fcntl, fd, command, || next!(fcntl(fd, command, argument)))
    }

    unsafe fn __fcntl(fd: c_int, command: c_int, argument: *mut c_void) -> c_int {
        tracking::controlled(Symbol::__fcntl, fd, command, || next!(__fcntl(fd, command, argument)))
    }

    unsafe fn fcntl64(fd: c_int, command: c_int, argument: *mut c_void) -> c_int {
        tracking::controlled(Symbol::fcntl64, fd, command, || next!(fcntl64(fd, command, argument)))
    }

    unsafe fn fdopen(fd: c_int, mode: *const c_char) -> *mut FILE {
        tracking::stream_opened(Symbol::fdopen, fd, || next!(fdopen(fd, mode)))
    }
}

impl Observer for Calls {
    fn observe(number: c_long, first: usize, second: usize, third: usize) {
        tracking::system_call(number, first, second, third);
        restrictions::observe(number, first, second, third);
    }
}
