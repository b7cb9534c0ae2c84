// SPDX-License-Identifier: Apache-2.0

/// The one table of the libc functions that Tare can stand in front of, by groups: a library
/// exports those that it names to [`export!`](crate::export). The pointers to the next definitions,
/// the [`Interposer`](crate::Interposer) trait, the exported functions and the numbers that a
/// library gives to its functions ([`number!`](crate::number)) are all derived from it.
///
/// Hands the functions of the groups in the last brackets, in their order, to `callback!` as
/// `{ [arguments] fn ...; }`.
///
/// Variadic functions stand with fixed arguments, which is the same call on x86-64 and
/// aarch64. `vfork` and `syscall` are not here but in `naked`: they must not have a frame.
///
/// `observed_symbols!` has what a library watches and does not count: functions that are a system
/// call, whose number stands behind them.
#[macro_export]
macro_rules! symbols {
    ([$($callback:tt)*] $arguments:tt [] $($functions:tt)*) => {
        $($callback)*! { $arguments $($functions)* }
    };
    // Move bytes through descriptors.
    ($callback:tt $arguments:tt [bytes $($rest:ident)*] $($functions:tt)*) => { $crate::symbols! {
        $callback $arguments [$($rest)*] $($functions)*
        fn read(fd: c_int, buffer: *mut c_void, length: size_t) -> ssize_t;
        fn __read(fd: c_int, buffer: *mut c_void, length: size_t) -> ssize_t;
        fn __read_chk(fd: c_int, buffer: *mut c_void, length: size_t, room: size_t) -> ssize_t;
        fn readv(fd: c_int, vectors: *const iovec, count: c_int) -> ssize_t;
        fn preadv2(fd: c_int, vectors: *const iovec, count: c_int, offset: off_t, flags: c_int) -> ssize_t;
        fn preadv64v2(fd: c_int, vectors: *const iovec, count: c_int, offset: off_t, flags: c_int) -> ssize_t;
        fn recv(fd: c_int, buffer: *mut c_void, length: size_t, flags: c_int) -> ssize_t;
        fn __recv_chk(fd: c_int, buffer: *mut c_void, length: size_t, room: size_t, flags: c_int) -> ssize_t;
        fn recvfrom(fd: c_int, buffer: *mut c_void, length: size_t, flags: c_int, address: *mut sockaddr, address_length: *mut socklen_t) -> ssize_t;
        fn __recvfrom_chk(fd: c_int, buffer: *mut c_void, length: size_t, room: size_t, flags: c_int, address: *mut sockaddr, address_length: *mut socklen_t) -> ssize_t;
        fn recvmsg(fd: c_int, message: *mut msghdr, flags: c_int) -> ssize_t;
        fn recvmmsg(fd: c_int, messages: *mut mmsghdr, count: c_uint, flags: c_int, timeout: *mut timespec) -> c_int;
        fn write(fd: c_int, buffer: *const c_void, length: size_t) -> ssize_t;
        fn __write(fd: c_int, buffer: *const c_void, length: size_t) -> ssize_t;
        fn writev(fd: c_int, vectors: *const iovec, count: c_int) -> ssize_t;
        fn pwritev2(fd: c_int, vectors: *const iovec, count: c_int, offset: off_t, flags: c_int) -> ssize_t;
        fn pwritev64v2(fd: c_int, vectors: *const iovec, count: c_int, offset: off_t, flags: c_int) -> ssize_t;
        fn send(fd: c_int, buffer: *const c_void, length: size_t, flags: c_int) -> ssize_t;
        fn __send(fd: c_int, buffer: *const c_void, length: size_t, flags: c_int) -> ssize_t;
        fn sendto(fd: c_int, buffer: *const c_void, length: size_t, flags: c_int, address: *const sockaddr, address_length: socklen_t) -> ssize_t;
        fn sendmsg(fd: c_int, message: *const msghdr, flags: c_int) -> ssize_t;
        fn sendmmsg(fd: c_int, messages: *mut mmsghdr, count: c_uint, flags: c_int) -> c_int;
        fn sendfile(out: c_int, input: c_int, offset: *mut off_t, count: size_t) -> ssize_t;
        fn sendfile64(out: c_int, input: c_int, offset: *mut off_t, count: size_t) -> ssize_t;
    } };
    // Make sockets and connections.
    ($callback:tt $arguments:tt [connections $($rest:ident)*] $($functions:tt)*) => { $crate::symbols! {
        $callback $arguments [$($rest)*] $($functions)*
        fn accept(fd: c_int, address: *mut sockaddr, length: *mut socklen_t) -> c_int;
        fn accept4(fd: c_int, address: *mut sockaddr, length: *mut socklen_t, flags: c_int) -> c_int;
        fn connect(fd: c_int, address: *const sockaddr, length: socklen_t) -> c_int;
        fn __connect(fd: c_int, address: *const sockaddr, length: socklen_t) -> c_int;
        fn socket(domain: c_int, kind: c_int, protocol: c_int) -> c_int;
        fn socketpair(domain: c_int, kind: c_int, protocol: c_int, pair: *mut c_int) -> c_int;
    } };
    // Close, duplicate and control descriptors.
    ($callback:tt $arguments:tt [descriptors $($rest:ident)*] $($functions:tt)*) => { $crate::symbols! {
        $callback $arguments [$($rest)*] $($functions)*
        fn close(fd: c_int) -> c_int;
        fn __close(fd: c_int) -> c_int;
        fn close_range(first: c_uint, last: c_uint, flags: c_int) -> c_int;
        fn closefrom(first: c_int) -> ();
        fn dup(fd: c_int) -> c_int;
        fn dup2(old: c_int, new: c_int) -> c_int;
        fn __dup2(old: c_int, new: c_int) -> c_int;
        fn dup3(old: c_int, new: c_int, flags: c_int) -> c_int;
        fn fcntl(fd: c_int, command: c_int, argument: *mut c_void) -> c_int;
        fn __fcntl(fd: c_int, command: c_int, argument: *mut c_void) -> c_int;
        fn fcntl64(fd: c_int, command: c_int, argument: *mut c_void) -> c_int;
    } };
    // Open and close descriptors by way of stdio.
    ($callback:tt $arguments:tt [streams $($rest:ident)*] $($functions:tt)*) => { $crate::symbols! {
        $callback $arguments [$($rest)*] $($functions)*
        fn fclose(stream: *mut FILE) -> c_int;
        fn freopen(path: *const c_char, mode: *const c_char, stream: *mut FILE) -> *mut FILE;
        fn freopen64(path: *const c_char, mode: *const c_char, stream: *mut FILE) -> *mut FILE;
        fn fdopen(fd: c_int, mode: *const c_char) -> *mut FILE;
    } };
    // Wait for descriptors.
    ($callback:tt $arguments:tt [waiting $($rest:ident)*] $($functions:tt)*) => { $crate::symbols! {
        $callback $arguments [$($rest)*] $($functions)*
        fn poll(places: *mut pollfd, count: nfds_t, timeout: c_int) -> c_int;
        fn __poll_chk(places: *mut pollfd, count: nfds_t, timeout: c_int, room: size_t) -> c_int;
        fn ppoll(places: *mut pollfd, count: nfds_t, timeout: *const timespec, mask: *const sigset_t) -> c_int;
        fn __ppoll_chk(places: *mut pollfd, count: nfds_t, timeout: *const timespec, mask: *const sigset_t, room: size_t) -> c_int;
        fn select(count: c_int, read: *mut fd_set, write: *mut fd_set, other: *mut fd_set, timeout: *mut timeval) -> c_int;
        fn pselect(count: c_int, read: *mut fd_set, write: *mut fd_set, other: *mut fd_set, timeout: *const timespec, mask: *const sigset_t) -> c_int;
        fn epoll_create(size: c_int) -> c_int;
        fn epoll_create1(flags: c_int) -> c_int;
        fn epoll_ctl(set: c_int, operation: c_int, fd: c_int, event: *mut epoll_event) -> c_int;
        fn epoll_wait(set: c_int, events: *mut epoll_event, most: c_int, timeout: c_int) -> c_int;
        fn epoll_pwait(set: c_int, events: *mut epoll_event, most: c_int, timeout: c_int, mask: *const sigset_t) -> c_int;
        fn epoll_pwait2(set: c_int, events: *mut epoll_event, most: c_int, timeout: *const timespec, mask: *const sigset_t) -> c_int;
    } };
    // Change what a socket does, or move bytes without a buffer.
    ($callback:tt $arguments:tt [options $($rest:ident)*] $($functions:tt)*) => { $crate::symbols! {
        $callback $arguments [$($rest)*] $($functions)*
        fn shutdown(fd: c_int, how: c_int) -> c_int;
        fn setsockopt(fd: c_int, level: c_int, name: c_int, value: *const c_void, length: socklen_t) -> c_int;
        fn getsockopt(fd: c_int, level: c_int, name: c_int, value: *mut c_void, length: *mut socklen_t) -> c_int;
        fn ioctl(fd: c_int, request: c_ulong, argument: *mut c_void) -> c_int;
        fn splice(input: c_int, input_offset: *mut off64_t, output: c_int, output_offset: *mut off64_t, length: size_t, flags: c_uint) -> ssize_t;
    } };
}

#[macro_export]
macro_rules! observed_symbols {
    ([$($callback:tt)*] $($argument:tt)*) => { $($callback)*! { [$($argument)*]
        fn prctl(option: c_int, second: c_ulong, third: c_ulong, fourth: c_ulong, fifth: c_ulong) -> c_int = SYS_prctl;
        fn mlockall(flags: c_int) -> c_int = SYS_mlockall;
        fn setrlimit(resource: c_uint, limit: *const c_void) -> c_int = SYS_setrlimit;
        fn setrlimit64(resource: c_uint, limit: *const c_void) -> c_int = SYS_setrlimit;
        fn prlimit(process: c_int, resource: c_uint, limit: *const c_void, before: *mut c_void) -> c_int = SYS_prlimit64;
        fn prlimit64(process: c_int, resource: c_uint, limit: *const c_void, before: *mut c_void) -> c_int = SYS_prlimit64;
    } };
}
