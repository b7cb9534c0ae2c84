// SPDX-License-Identifier: Apache-2.0
//! What the library asks the kernel for itself: never through libc, whose functions others may
//! intercept, set errno, and can end the thread.

use core::ffi::c_int;
use core::mem::MaybeUninit;
use core::sync::atomic::AtomicU32;
use libc::{epoll_event, iovec, msghdr, pollfd, socklen_t};
use tare_shm::syscall::{self, Errno, call};

/// Offsets in the kernel's tcp_info (linux/tcp.h), which only grows.
const RECEIVED: usize = 128;
const UNSENT: usize = 144;
const SENT: usize = 200;
const SENT_AGAIN: usize = 208;
const ESTABLISHED: u8 = 1;

/// Bytes that a connection has moved, as the kernel counts.
#[derive(Clone, Copy, PartialEq, Eq)]
struct TcpInfo {
    received: u64,
    written: u64,
}

impl TcpInfo {
    /// `None` unless the connection is established in both directions.
    fn get(fd: c_int) -> Option<Self> {
        let mut info = [0u8; 216];
        let mut length = info.len() as socklen_t;
        let (place, size) = (info.as_mut_ptr().addr(), (&raw mut length).addr());
        let [level, name] = [libc::IPPROTO_TCP, libc::TCP_INFO].map(|number| number as usize);
        // SAFETY: the kernel writes at most `length` bytes.
        unsafe { call(libc::SYS_getsockopt, [fd as usize, level, name, place, size, 0]) }.ok()?;
        if (length as usize) < info.len() || info[0] != ESTABLISHED {
            return None;
        }
        let long = |offset: usize| Some(u64::from_ne_bytes(*info.get(offset..)?.first_chunk()?));
        let unsent = u32::from_ne_bytes(*info.get(UNSENT..)?.first_chunk()?);
        let written = long(SENT)?.wrapping_sub(long(SENT_AGAIN)?).wrapping_add(unsent.into());
        Some(Self { received: long(RECEIVED)?, written })
    }
}

/// Bytes that the program has written to a connection.
pub fn written(fd: c_int) -> Option<u64> {
    Some(TcpInfo::get(fd)?.written)
}

/// Bytes that the program has read from a connection.
pub fn read(fd: c_int) -> Option<u64> {
    const TIMES: u32 = 8;
    for _ in 0..TIMES {
        let before = TcpInfo::get(fd)?.received;
        let waiting = waiting(fd).ok()?;
        if TcpInfo::get(fd)?.received == before {
            return before.checked_sub(waiting);
        }
    }
    None
}

/// Bytes that wait to be read (FIONREAD).
pub fn waiting(fd: c_int) -> Result<u64, Errno> {
    let mut count: c_int = 0;
    let arguments = [fd as usize, libc::FIONREAD as usize, (&raw mut count).addr(), 0, 0, 0];
    // SAFETY: the kernel writes one number.
    unsafe { call(libc::SYS_ioctl, arguments) }?;
    Ok(u64::try_from(count).unwrap_or(0))
}

/// Reads from a connection without waiting.
pub fn receive(fd: c_int, buffers: &[iovec], flags: c_int) -> Result<usize, Errno> {
    message(libc::SYS_recvmsg, fd, buffers, flags | libc::MSG_DONTWAIT)
}

/// What a read would return: 0 at the end of the stream.
pub fn peek(fd: c_int) -> Result<usize, Errno> {
    let mut byte = 0u8;
    let buffer = iovec { iov_base: (&raw mut byte).cast(), iov_len: 1 };
    receive(fd, &[buffer], libc::MSG_PEEK)
}

/// Writes to a connection without waiting and without a signal.
pub fn send(fd: c_int, buffers: &[iovec]) -> Result<usize, Errno> {
    message(libc::SYS_sendmsg, fd, buffers, libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL)
}

fn message(number: i64, fd: c_int, buffers: &[iovec], flags: c_int) -> Result<usize, Errno> {
    // SAFETY: zeros are a message.
    let mut message: msghdr = unsafe { MaybeUninit::zeroed().assume_init() };
    message.msg_iov = buffers.as_ptr().cast_mut();
    message.msg_iovlen = buffers.len();
    let message = (&raw mut message).addr();
    // SAFETY: the kernel checks the program's buffers itself.
    unsafe { call(number, [fd as usize, message, flags as usize, 0, 0, 0]) }
}

pub fn is_nonblocking(fd: c_int) -> bool {
    let flags = syscall::fcntl(fd, libc::F_GETFL, 0);
    flags.is_ok_and(|flags| flags & libc::O_NONBLOCK as usize != 0)
}

pub fn is_close_on_exec(fd: c_int) -> bool {
    let flags = syscall::fcntl(fd, libc::F_GETFD, 0);
    flags.is_ok_and(|flags| flags & libc::FD_CLOEXEC as usize != 0)
}

/// Whether a descriptor is of a regular file that can be read into any memory.
pub fn is_plain_file(fd: c_int) -> bool {
    let flags = syscall::fcntl(fd, libc::F_GETFL, 0);
    flags.is_ok_and(|flags| flags & libc::O_DIRECT as usize == 0)
        && syscall::fstat(fd).is_ok_and(|stat| stat.st_mode & libc::S_IFMT == libc::S_IFREG)
}

/// Reads from this place of a file.
pub fn read_at(fd: c_int, buffers: &[iovec], place: i64) -> Result<usize, Errno> {
    let list = buffers.as_ptr().addr();
    let arguments = [fd as usize, list, buffers.len(), place as usize, 0, 0];
    // SAFETY: the kernel writes to a ring, or to what the caller has.
    unsafe { call(libc::SYS_preadv, arguments) }
}

/// A timeout of a socket in milliseconds, -1 for none (SO_RCVTIMEO, SO_SNDTIMEO).
pub fn timeout(fd: c_int, name: c_int) -> c_int {
    let mut time = libc::timeval { tv_sec: 0, tv_usec: 0 };
    let mut length = size_of::<libc::timeval>() as socklen_t;
    let (place, size) = ((&raw mut time).addr(), (&raw mut length).addr());
    let [level, name] = [libc::SOL_SOCKET, name].map(|number| number as usize);
    // SAFETY: the kernel writes one time.
    let got = unsafe { call(libc::SYS_getsockopt, [fd as usize, level, name, place, size, 0]) };
    if got.is_err() || (time.tv_sec == 0 && time.tv_usec == 0) {
        return -1;
    }
    let milliseconds = time.tv_sec.saturating_mul(1000).saturating_add((time.tv_usec + 999) / 1000);
    c_int::try_from(milliseconds).unwrap_or(c_int::MAX)
}

/// Events of a descriptor, without waiting.
pub fn events(fd: c_int, wanted: i16) -> i16 {
    let mut place = pollfd { fd, events: wanted, revents: 0 };
    let now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    let arguments = [(&raw mut place).addr(), 1, (&raw const now).addr(), 0, 0, 0];
    // SAFETY: one place, and a time.
    let _ = unsafe { call(libc::SYS_ppoll, arguments) };
    place.revents
}

/// Whether the other end of a connection sends no more.
#[inline(never)]
pub fn has_ended(fd: c_int) -> bool {
    events(fd, libc::POLLRDHUP) & (libc::POLLRDHUP | libc::POLLERR | libc::POLLHUP) != 0
}

/// Waits until a descriptor can be written, at most this number of milliseconds.
pub fn wait_writable(fd: c_int, milliseconds: u64) {
    let mut place = pollfd { fd, events: libc::POLLOUT, revents: 0 };
    let time = libc::timespec {
        tv_sec: (milliseconds / 1000) as i64,
        tv_nsec: (milliseconds % 1000 * 1_000_000) as i64,
    };
    let arguments = [(&raw mut place).addr(), 1, (&raw const time).addr(), 0, 0, 0];
    // SAFETY: one place, and a time.
    let _ = unsafe { call(libc::SYS_ppoll, arguments) };
}

/// Waits for events of several descriptors, at most this number of milliseconds.
pub fn poll(places: &mut [pollfd], milliseconds: Option<i64>) {
    let time = milliseconds.map(|milliseconds| libc::timespec {
        tv_sec: milliseconds / 1000,
        tv_nsec: milliseconds % 1000 * 1_000_000,
    });
    let time = time.as_ref().map_or(0, |time| core::ptr::from_ref(time).addr());
    let arguments = [places.as_mut_ptr().addr(), places.len(), time, 0, 0, 0];
    // SAFETY: this number of places, and a time or none.
    let _ = unsafe { call(libc::SYS_ppoll, arguments) };
}

/// What happens to bytes that TCP still has when a connection is closed: whether `close` waits for
/// them, and for how many seconds (SO_LINGER). 0 seconds: they are dropped, with a reset.
pub fn linger(fd: c_int) -> Option<c_int> {
    let mut linger = libc::linger { l_onoff: 0, l_linger: 0 };
    let mut length = size_of::<libc::linger>() as socklen_t;
    let (place, size) = ((&raw mut linger).addr(), (&raw mut length).addr());
    let [level, name] = [libc::SOL_SOCKET, libc::SO_LINGER].map(|number| number as usize);
    // SAFETY: the kernel writes the option.
    unsafe { call(libc::SYS_getsockopt, [fd as usize, level, name, place, size, 0]) }.ok()?;
    (linger.l_onoff != 0).then_some(linger.l_linger)
}

pub fn set_linger(fd: c_int, seconds: Option<c_int>) {
    let linger =
        libc::linger { l_onoff: c_int::from(seconds.is_some()), l_linger: seconds.unwrap_or(0) };
    let place = (&raw const linger).addr();
    let [level, name] = [libc::SOL_SOCKET, libc::SO_LINGER].map(|number| number as usize);
    let arguments = [fd as usize, level, name, place, size_of::<libc::linger>(), 0];
    // SAFETY: the kernel reads the option.
    let _ = unsafe { call(libc::SYS_setsockopt, arguments) };
}

/// Lets the kernel reset a connection when it is closed, also by the end of the program.
pub fn reset_at_close(fd: c_int) {
    set_linger(fd, Some(0));
}

/// Whether TCP has sent all of its bytes, and takes this number of further ones at once.
pub fn has_room(fd: c_int, bytes: u64) -> bool {
    /// Bytes that were not sent yet (linux/sockios.h); TIOCOUTQ has those that were not received, too.
    const SIOCOUTQNSD: usize = 0x894b;
    let count = |request: usize| {
        let mut count: c_int = 0;
        let arguments = [fd as usize, request, (&raw mut count).addr(), 0, 0, 0];
        // SAFETY: the kernel writes one number.
        unsafe { call(libc::SYS_ioctl, arguments) }.ok().and_then(|_| u64::try_from(count).ok())
    };
    let most = tare_interpose::socket_option(fd, libc::SO_SNDBUF).unwrap_or(0);
    // The kernel counts its own overhead, too.
    let room = u64::try_from(most).unwrap_or(0) / 4;
    count(SIOCOUTQNSD) == Some(0)
        && count(libc::TIOCOUTQ as usize).is_some_and(|queued| queued + bytes <= room)
}

pub fn shutdown(fd: c_int, how: c_int) {
    // SAFETY: no memory is touched.
    let _ = unsafe { call(libc::SYS_shutdown, [fd as usize, how as usize, 0, 0, 0, 0]) };
}

/// Resets a connection: both ends see it.
pub fn reset(fd: c_int) {
    // SAFETY: zeros are an address.
    let mut nowhere: libc::sockaddr = unsafe { MaybeUninit::zeroed().assume_init() };
    nowhere.sa_family = libc::AF_UNSPEC as u16;
    let arguments = [fd as usize, (&raw const nowhere).addr(), size_of_val(&nowhere), 0, 0, 0];
    // SAFETY: the kernel reads the address.
    let _ = unsafe { call(libc::SYS_connect, arguments) };
}

pub fn eventfd() -> Result<c_int, Errno> {
    let flags = (libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) as usize;
    // SAFETY: no memory is touched.
    unsafe { call(libc::SYS_eventfd2, [0, flags, 0, 0, 0, 0]) }.map(|fd| fd as c_int)
}

/// Adds 1 to an eventfd.
pub fn add(fd: c_int) {
    let increment = 1u64;
    // SAFETY: the kernel reads eight bytes.
    let _ =
        unsafe { call(libc::SYS_write, [fd as usize, (&raw const increment).addr(), 8, 0, 0, 0]) };
}

/// Takes an eventfd's number; false if it was 0.
pub fn clear(fd: c_int) -> bool {
    syscall::read(fd, &mut [0; 8]).is_ok()
}

pub fn epoll(set: c_int, operation: c_int, fd: c_int, events: u32, data: u64) -> bool {
    let event = epoll_event { events, u64: data };
    let place = (&raw const event).addr();
    let arguments = [set as usize, operation as usize, fd as usize, place, 0, 0];
    // SAFETY: the kernel reads the event.
    unsafe { call(libc::SYS_epoll_ctl, arguments) }.is_ok()
}

/// Sleeps while a futex that other processes share is `value`, at most this number of nanoseconds.
pub fn futex_wait(word: &AtomicU32, value: u32, nanoseconds: i64) -> Result<(), Errno> {
    let time = libc::timespec { tv_sec: 0, tv_nsec: nanoseconds };
    let place = core::ptr::from_ref(word).addr();
    let time = (&raw const time).addr();
    let arguments = [place, libc::FUTEX_WAIT as usize, value as usize, time, 0, 0];
    // SAFETY: the kernel reads the word and the time.
    unsafe { call(libc::SYS_futex, arguments) }.map(drop)
}

/// Wakes all who sleep on a futex.
pub fn futex_wake(word: &AtomicU32) {
    let place = core::ptr::from_ref(word).addr();
    let arguments = [place, libc::FUTEX_WAKE as usize, i32::MAX as usize, 0, 0, 0];
    // SAFETY: no memory is touched.
    let _ = unsafe { call(libc::SYS_futex, arguments) };
}

/// Milliseconds of a clock that only goes on.
pub fn now() -> i64 {
    let time = syscall::clock(libc::CLOCK_MONOTONIC).unwrap_or(0);
    i64::try_from(time / 1_000_000).unwrap_or(i64::MAX)
}

pub fn yield_now() {
    // SAFETY: no memory is touched.
    let _ = unsafe { call(libc::SYS_sched_yield, [0; 6]) };
}

pub fn sleep(microseconds: i64) {
    syscall::sleep(microseconds * 1000);
}

/// Sends a signal to the calling thread.
pub fn raise(signal: c_int) {
    // SAFETY: no memory is touched.
    let _ =
        unsafe { call(libc::SYS_tkill, [syscall::gettid() as usize, signal as usize, 0, 0, 0, 0]) };
}

/// Whether a thread of this PID namespace exists, and has not ended: a parent may not have asked for
/// its end yet.
pub fn exists(thread: u32) -> bool {
    let buffer = iovec { iov_base: core::ptr::null_mut(), iov_len: 1 };
    let place = (&raw const buffer).addr();
    // SAFETY: no memory is touched, and signal 0 is none.
    let sent = unsafe { call(libc::SYS_tkill, [thread as usize, 0, 0, 0, 0, 0]) };
    // SAFETY: neither process has memory at address 0 that could be copied.
    let copied =
        || unsafe { call(libc::SYS_process_vm_readv, [thread as usize, place, 1, place, 1, 0]) };
    // Of a thread that has ended, the kernel has no memory.
    sent != Err(Errno(libc::ESRCH)) && copied() != Err(Errno(libc::ESRCH))
}

/// Whether every signal handler of the program restarts calls: a wait that a handler interrupts
/// goes on then.
pub fn handlers_restart() -> bool {
    #[repr(C)]
    struct Action {
        handler: usize,
        flags: u64,
        rest: [u64; 2],
    }
    (1..=64usize).all(|signal| {
        let mut action = Action { handler: 0, flags: 0, rest: [0; 2] };
        let arguments = [signal, 0, (&raw mut action).addr(), 8, 0, 0];
        // SAFETY: the kernel writes its own form of the action, which is this.
        let got = unsafe { call(libc::SYS_rt_sigaction, arguments) };
        // 0 and 1: the default, and ignored.
        got.is_err() || action.handler <= 1 || action.flags & libc::SA_RESTART as u64 != 0
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn process_that_has_ended_does_not_exist_though_its_parent_has_not_waited() {
        assert!(exists(syscall::gettid()));
        // SAFETY: the child makes one system call.
        let child = unsafe { libc::fork() };
        if child == 0 {
            // SAFETY: ends the child.
            unsafe { libc::_exit(0) };
        }
        let mut information = MaybeUninit::<libc::siginfo_t>::zeroed();
        let options = libc::WEXITED | libc::WNOWAIT;
        // SAFETY: the kernel writes one record.
        let ended =
            unsafe { libc::waitid(libc::P_PID, child as u32, information.as_mut_ptr(), options) };
        assert_eq!(ended, 0);
        assert!(!exists(child as u32));
        // SAFETY: the kernel writes nothing.
        assert_eq!(unsafe { libc::waitpid(child, core::ptr::null_mut(), 0) }, child);
    }
}
