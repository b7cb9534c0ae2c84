// SPDX-License-Identifier: Apache-2.0
//! Hands the segment to a collector, by its socket; and asks the kernel whether one has it.

use crate::attach::descriptor;
use crate::complaint;
use crate::settings::{self, PATH};
use core::ffi::c_int;
use core::mem::{MaybeUninit, offset_of};
use tare_log_segment::Identity;
use tare_shm::peer::{self, Peers};
use tare_shm::syscall::{self, Errno};
use tare_shm::{move_up, rights, service};

/// How long the collector may take to say that it has the segment, in milliseconds: rules of
/// the user's hold from the first event on.
const PATIENCE_MS: usize = 500;

/// Offers the segment to whoever listens at `path`. Where nobody does, a collector finds it
/// later, by the descriptors of this process. The connection stays: its end tells the
/// collector that this program has ended, or another has taken its place.
pub fn offer(path: &[u8; PATH], segment: c_int) {
    let _ = try_offer(path, segment).inspect_err(|why| complaint::lacking(*why));
}

fn try_offer(path: &[u8; PATH], segment: c_int) -> Result<(), Errno> {
    let socket = dial(path)?;
    rights::send(socket, segment)
        .and_then(|()| wait(socket))
        .inspect_err(|_| syscall::close(socket))
}

/// The descriptor of `what`, which the collector at `path` lends.
#[inline(never)]
pub fn borrow(path: &[u8; PATH], what: Identity) -> Result<c_int, Errno> {
    let socket = dial(path)?;
    let lent = ask(socket, what).and_then(|()| wait(socket)).and_then(|()| receive(socket));
    syscall::close(socket);
    lent
}

/// A connection to whoever listens at `path`.
fn dial(path: &[u8; PATH]) -> Result<c_int, Errno> {
    let kind = libc::SOCK_STREAM | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
    // SAFETY: no memory is touched.
    let socket = unsafe {
        syscall::call(libc::SYS_socket, [libc::AF_UNIX as usize, kind as usize, 0, 0, 0, 0])
    }? as c_int;
    let socket = move_up(socket);
    let reached = connect(socket, path).and_then(|()| check_peer(socket));
    reached.map(|()| socket).inspect_err(|_| syscall::close(socket))
}

/// Fails if the listener runs as another user: it could read all events, and change the segment.
#[inline(never)]
fn check_peer(socket: c_int) -> Result<(), Errno> {
    let user = peer::credentials(socket)?.uid;
    if Peers::get(settings::collectors_user()).admit(user) {
        return Ok(());
    }
    complaint::STRANGER.say();
    Err(Errno(libc::EACCES))
}

#[inline(never)]
fn connect(socket: c_int, path: &[u8; PATH]) -> Result<(), Errno> {
    // SAFETY: zeros are an address.
    let mut address: libc::sockaddr_un = unsafe { MaybeUninit::zeroed().assume_init() };
    address.sun_family = libc::AF_UNIX as libc::sa_family_t;
    let length = path.iter().position(|byte| *byte == 0).unwrap_or(PATH - 1);
    for (place, byte) in address.sun_path.iter_mut().zip(path) {
        *place = *byte as _;
    }
    let size = offset_of!(libc::sockaddr_un, sun_path) + length + 1;
    // SAFETY: the address lives as long as the call.
    unsafe {
        let arguments = [socket as usize, (&raw const address).addr(), size, 0, 0, 0];
        syscall::call(libc::SYS_connect, arguments)
    }
    .map(drop)
}

/// What comes with the collector's answer.
fn receive(socket: c_int) -> Result<c_int, Errno> {
    rights::receive(socket, &mut [0])?.fd.map(move_up).ok_or(Errno(libc::ENOENT))
}

fn ask(socket: c_int, what: Identity) -> Result<(), Errno> {
    let bytes = what.bytes();
    let flags = libc::MSG_NOSIGNAL as usize;
    let arguments = [socket as usize, bytes.as_ptr().addr(), bytes.len(), flags, 0, 0];
    // SAFETY: the kernel reads the bytes.
    unsafe { syscall::call(libc::SYS_sendto, arguments) }.map(drop)
}

/// Until the collector answers.
fn wait(socket: c_int) -> Result<(), Errno> {
    let mut poll = libc::pollfd { fd: socket, events: libc::POLLIN, revents: 0 };
    let mut left = libc::timespec { tv_sec: 0, tv_nsec: PATIENCE_MS as i64 * 1_000_000 };
    loop {
        let arguments = [(&raw mut poll).addr(), 1, (&raw mut left).addr(), 0, size_of::<u64>(), 0];
        // SAFETY: both live as long as the call, which writes what is left of the time.
        match unsafe { syscall::call(libc::SYS_ppoll, arguments) } {
            Err(Errno(libc::EINTR)) => {}
            done => return done.map(drop),
        }
    }
}

/// Whether a collector has the segment.
pub fn is_served() -> bool {
    descriptor().is_some_and(|fd| matches!(service::server(fd), Ok(Some(_))))
}

/// Wakes the collector, if it sleeps.
pub fn wake() {
    if let Some((_, process)) = crate::attach::attached() {
        process.bell.wake();
    }
}
