// SPDX-License-Identifier: Apache-2.0
//! Hands the segment to a collector, by its socket; and asks the kernel whether one has it.

use crate::program::settings::{self, PATH};
use crate::program::warnings;
use crate::segment::mapped::{attached, descriptor};
use crate::segment::region::Region;
use core::ffi::{c_int, c_short};
use core::mem::{MaybeUninit, offset_of};
use core::sync::atomic::Ordering::Relaxed;
use core::sync::atomic::{AtomicI32, AtomicU64};
use tare_log_segment::Identity;
use tare_shm::peer::{self, Peers};
use tare_shm::syscall::{self, Errno};
use tare_shm::{move_up, rights, service};

/// How long the collector may take to say that it has the segment, in milliseconds: rules of
/// the user's hold from the first event on.
const PATIENCE_MS: usize = 500;

/// The connection of the last offer, and its inode: a program may have closed it, and something of
/// its own is there now.
static OFFERED: AtomicI32 = AtomicI32::new(-1);
static OFFERED_FILE: AtomicU64 = AtomicU64::new(0);

/// Offers the segment to whoever listens at `path`. Where nobody does, a collector finds it
/// later, by the descriptors of this process. The connection stays: its end tells the
/// collector that this program has ended, or another has taken its place.
///
/// A collector that many connect to has no room for the connection, or closes it because nothing
/// came over it yet: then the program comes again.
pub fn offer(path: &[u8; PATH], segment: c_int) {
    // In the child of a fork it is the parent's.
    OFFERED.store(-1, Relaxed);
    for _ in 0..TRIES {
        match try_offer(path, segment, PATIENCE_MS) {
            Err(Errno(libc::EAGAIN | libc::EPIPE | libc::ECONNRESET)) => syscall::sleep(PAUSE_NS),
            Err(why) => return warnings::lacking(why),
            Ok(()) => return,
        }
    }
}

/// How often a program connects at first, and how long it waits in between: half a second together.
const TRIES: u32 = 100;
const PAUSE_NS: i64 = 5_000_000;

/// Fails with `EPIPE` if the collector closes the connection without an answer.
fn try_offer(path: &[u8; PATH], segment: c_int, patience_ms: usize) -> Result<(), Errno> {
    let socket = dial(path)?;
    let events = rights::send(socket, segment).and_then(|()| wait(socket, patience_ms));
    if events.is_ok_and(|events| events & libc::POLLHUP == 0) {
        OFFERED_FILE.store(syscall::fstat(socket).map_or(0, |status| status.st_ino), Relaxed);
        OFFERED.store(socket, Relaxed);
        return Ok(());
    }
    // Who is refused gets an answer, too.
    let is_answered = syscall::read(socket, &mut [0]) == Ok(1);
    syscall::close(socket);
    if is_answered { Ok(()) } else { events.and(Err(Errno(libc::EPIPE))) }
}

/// Whether the last offer has no answer yet: a collector that hangs has it in the queue of its
/// socket, and another one would only cost the program another descriptor. One that was answered
/// or whose collector has died is closed.
fn is_offered() -> bool {
    let (socket, file) = (OFFERED.load(Relaxed), OFFERED_FILE.load(Relaxed));
    if !syscall::fstat(socket).is_ok_and(|status| status.st_ino == file) {
        return false;
    }
    if wait(socket, 0) == Ok(0) {
        return true;
    }
    OFFERED.store(-1, Relaxed);
    syscall::close(socket);
    false
}

/// Calls between two looks at the clock, and the time between two more offers of a segment that no
/// collector has.
const CALLS: u32 = 64;
const GAP_MS: u32 = 1_000;
/// How long such an offer may take.
const AGAIN_MS: usize = 20;

/// Offers the segment again, now and then, if no collector has it though one is named: it had no
/// room, or has begun later.
#[cold]
#[inline(never)]
pub fn offer_again(region: &Region) {
    if !region.offers.fetch_add(1, Relaxed).is_multiple_of(CALLS) {
        return;
    }
    let Ok(now) = syscall::clock(libc::CLOCK_MONOTONIC) else { return };
    let now = ((now / 1_000_000) as u32).max(1);
    let next = region.offer_next.load(Relaxed);
    let is_due = next == 0 || now.wrapping_sub(next) < u32::MAX / 2;
    let due = now.wrapping_add(GAP_MS);
    if !is_due || region.offer_next.compare_exchange(next, due, Relaxed, Relaxed).is_err() {
        return;
    }
    let Some(segment) = descriptor().filter(|_| !is_served()) else { return };
    if is_offered() {
        return;
    }
    if let Some(path) = settings::socket() {
        let _ = try_offer(&path, segment, AGAIN_MS);
    }
}

/// The descriptor of `what`, which the collector at `path` lends.
#[inline(never)]
pub fn borrow(path: &[u8; PATH], what: Identity) -> Result<c_int, Errno> {
    let socket = dial(path)?;
    let lent =
        ask(socket, what).and_then(|()| wait(socket, PATIENCE_MS)).and_then(|_| receive(socket));
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
    warnings::STRANGER.say();
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

/// Until the collector answers or closes the connection; the events, none if the time is over.
fn wait(socket: c_int, most_ms: usize) -> Result<c_short, Errno> {
    let mut poll = libc::pollfd { fd: socket, events: libc::POLLIN, revents: 0 };
    let mut left = libc::timespec { tv_sec: 0, tv_nsec: most_ms as i64 * 1_000_000 };
    loop {
        let arguments = [(&raw mut poll).addr(), 1, (&raw mut left).addr(), 0, size_of::<u64>(), 0];
        // SAFETY: both live as long as the call, which writes what is left of the time.
        match unsafe { syscall::call(libc::SYS_ppoll, arguments) } {
            Err(Errno(libc::EINTR)) => {}
            done => return done.map(|_| poll.revents),
        }
    }
}

/// Whether a collector has the segment.
pub fn is_served() -> bool {
    descriptor().is_some_and(|fd| matches!(service::server(fd), Ok(Some(_))))
}

/// Wakes the collector, if it sleeps.
pub fn wake() {
    if let Some((_, process)) = attached() {
        process.bell.wake();
    }
}
