// SPDX-License-Identifier: Apache-2.0
//! The service thread, as all others know it: whether it runs, and the socket at which this process and
//! the other ends of its links wake it.

use crate::descriptors::reserved_descriptors;
use crate::{kernel, state};
use core::ffi::c_int;
use core::mem::MaybeUninit;
use core::sync::atomic::Ordering::{Acquire, Relaxed};
use core::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, AtomicU64};
use libc::sockaddr_un;
use tare_interpose::Background;
use tare_link_segment::Link;
use tare_shm::syscall::{self, Errno, call};

pub static THREAD: Background = Background::new();
/// The process whose thread this is.
pub static PROCESS: AtomicU32 = AtomicU32::new(0);
pub static SOCKET: AtomicI32 = AtomicI32::new(0);
/// What the name of the socket is made from; 0 if the thread does not run.
pub static NAME: AtomicU64 = AtomicU64::new(0);
pub static MUST_END: AtomicBool = AtomicBool::new(false);

/// Whether this process has the thread.
pub fn is_here() -> bool {
    PROCESS.load(Acquire) == state::process_number() && THREAD.is_running()
}

/// Whether bytes can be left to the thread.
pub fn is_running() -> bool {
    is_here() && !MUST_END.load(Relaxed)
}

/// There is something for this process's thread.
pub fn wake_own() {
    let name = NAME.load(Acquire);
    if name != 0 && is_here() {
        wake(SOCKET.load(Relaxed), Some(name));
    }
}

/// There is something for the thread of the other end; false if there is no such thread, because its
/// process has ended or restarts it.
pub fn wake_other(link: &Link) -> bool {
    link.services().is_some_and(|[_, other]| wake_all(other, 0))
}

/// Whether another process that has this end has a thread, too.
pub fn has_another(link: &Link) -> bool {
    link.services().is_some_and(|[own, _]| wake_all(own, NAME.load(Relaxed)))
}

/// Wakes the threads with these names, but for one; false if there are none.
fn wake_all(names: &[AtomicU64], but: u64) -> bool {
    let names = names.iter().map(|place| place.load(Acquire));
    let names = names.filter(|name| *name != 0 && *name != but);
    let own = SOCKET.load(Relaxed);
    let socket = if own > 0 && is_here() { Ok(own) } else { socket() };
    let Ok(socket) = socket else { return false };
    let is_there = names.filter(|name| wake(socket, Some(*name))).count() > 0;
    if socket != own {
        syscall::close(socket);
    }
    is_there
}

/// Sends an empty datagram to a thread; false if nobody has its socket. If that is full, the thread
/// wakes anyway.
pub fn wake(socket: c_int, name: Option<u64>) -> bool {
    let Some(name) = name else {
        // A shut socket is readable for ever.
        kernel::shutdown(socket, libc::SHUT_RDWR);
        return true;
    };
    let (address, length) = address(name);
    let flags = (libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL) as usize;
    let place = (&raw const address).addr();
    // SAFETY: the kernel reads the address.
    let sent = unsafe { call(libc::SYS_sendto, [socket as usize, 0, 0, flags, place, length]) };
    matches!(sent, Ok(_) | Err(Errno(libc::EAGAIN)))
}

fn socket() -> Result<c_int, Errno> {
    let kind = (libc::SOCK_DGRAM | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK) as usize;
    // SAFETY: no memory is touched.
    let socket = unsafe { call(libc::SYS_socket, [libc::AF_UNIX as usize, kind, 0, 0, 0, 0]) }?;
    Ok(socket as c_int)
}

/// A hidden socket with a name that no other one has.
pub fn open() -> Option<(c_int, u64)> {
    let mut name = 0u64;
    let arguments = [(&raw mut name).addr(), size_of::<u64>(), 0, 0, 0, 0];
    // SAFETY: the kernel writes the number.
    unsafe { call(libc::SYS_getrandom, arguments) }.ok().filter(|_| name != 0)?;
    let socket = socket().ok()?;
    let (address, length) = address(name);
    let arguments = [socket as usize, (&raw const address).addr(), length, 0, 0, 0];
    // SAFETY: the kernel reads the address.
    if unsafe { call(libc::SYS_bind, arguments) }.is_err() {
        syscall::close(socket);
        return None;
    }
    Some((reserved_descriptors::hide(socket)?, name))
}

/// The abstract name of a thread's socket, and its length.
fn address(name: u64) -> (sockaddr_un, usize) {
    // SAFETY: zeros are an address.
    let mut address: sockaddr_un = unsafe { MaybeUninit::zeroed().assume_init() };
    address.sun_family = libc::AF_UNIX as u16;
    let digits = (0..16).map(|place| b"0123456789abcdef"[(name >> (60 - 4 * place) & 15) as usize]);
    let text = b"\0tare-link-service/".iter().copied().chain(digits);
    let mut length = size_of::<libc::sa_family_t>();
    for (place, byte) in address.sun_path.iter_mut().zip(text) {
        *place = byte as _;
        length += 1;
    }
    (address, length)
}
