// SPDX-License-Identifier: Apache-2.0
//! The sender's way back from the ring to TCP: bytes that the receiver has not read are taken back,
//! and TCP gets them before all others.

use crate::links::slots::{self, DirectionIndex, Slot, ring_iovecs};
use crate::links::{receiver_lock, sender_lock, service_socket};
use crate::state::lock;
use crate::{kernel, state};
use core::ffi::c_int;
use core::sync::atomic::Ordering::{Relaxed, Release};
use tare_link_segment::{Corrupt, Counter, Direction, Mode, Reason};
use tare_shm::syscall::{self, Errno};

/// Milliseconds that a program waits at a time for TCP to take what was taken back from the ring.
const WRITABLE_TIMEOUT: u64 = 100;

/// What becomes of bytes of the ring that the receiver has not read, when the stream goes to TCP.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Unread {
    /// They go to TCP first, so TCP never has a byte behind one of the ring, and the receiver can
    /// leave. If a receiver was stopped while it has its lock, they stay in the ring.
    TakenBack,
    /// As before, but the stream stays in the ring meanwhile.
    TakenBackOrLater,
    /// They stay in the ring, where the receiver reads them.
    Left,
}

/// Whether this end sends through TCP for good. After a child has given the connection to another
/// program, nobody knows how much that writes to TCP.
pub fn sends_tcp(slot: &Slot) -> bool {
    slot.sends_tcp.load(Relaxed) != 0 || slot.mapping().incoming.is_left()
}

/// Why.
pub fn tcp_reason(slot: &Slot) -> Reason {
    match slot.sends_tcp.load(Relaxed) {
        0 => slot.mapping().incoming.left_because(),
        reason => Reason::of(reason),
    }
}

/// From here on bytes go to TCP. Under the sender's lock.
pub fn to_tcp(fd: c_int, slot: &Slot, unread: Unread, reason: Reason) -> Result<(), Corrupt> {
    let outgoing = slot.mapping().outgoing;
    let is_urgent = unread != Unread::TakenBackOrLater;
    if outgoing.mode() == Mode::Tcp || !await_reader(slot, is_urgent) {
        return Ok(());
    }
    uninterrupted(|| change_to_tcp(fd, slot, unread, reason))?;
    if outgoing.backlog().is_some() {
        push(fd, slot);
        if outgoing.backlog().is_some() {
            service_socket::wake_own();
        }
    }
    Ok(())
}

/// Does something that a signal handler which sends must not find half done.
pub fn uninterrupted<T>(mut what: impl FnMut() -> T) -> T {
    syscall::with_signals_blocked(syscall::FROM_OTHERS, &mut what).unwrap_or_else(|_| what())
}

fn change_to_tcp(fd: c_int, slot: &Slot, unread: Unread, reason: Reason) -> Result<(), Corrupt> {
    let outgoing = slot.mapping().outgoing;
    let is_urgent = unread != Unread::TakenBackOrLater;
    // By a signal handler, just before.
    if outgoing.mode() == Mode::Tcp {
        return Ok(());
    }
    // Without its service thread, a program may never send what TCP does not take at once.
    let can_wait =
        || !is_urgent || service_socket::is_running() || kernel::has_room(fd, outgoing.unread());
    if outgoing.unread() > 0 && unread != Unread::Left && can_wait() {
        if let Some(held) = receiver_lock::take_soon_to_send(slot) {
            slot.interruptible_copy.invalidate(outgoing.head());
            let taken = outgoing.take_back(outgoing.capacity());
            lock::release(outgoing.receiver_lock(), held);
            count(outgoing, reason);
            return taken;
        }
        if !is_urgent {
            return Ok(());
        }
    }
    slot.interruptible_copy.invalidate(outgoing.head());
    outgoing.downgrade();
    count(outgoing, reason);
    Ok(())
}

fn count(outgoing: &Direction, reason: Reason) {
    outgoing.downgrades_because(reason);
    state::count(Counter::Downgrades, 1);
    state::count_reason(|statistics| &statistics.downgraded, reason);
}

/// Until the receiver is not between its look at the changes and its call: some microseconds. It has
/// its lock there: one that has ended there never comes back; one that was stopped there is waited for
/// if it `must` be.
fn await_reader(slot: &Slot, must: bool) -> bool {
    const YIELDS: u32 = 100;
    let outgoing = slot.mapping().outgoing;
    let mut times = 0u32;
    while !outgoing.can_downgrade() {
        times = times.saturating_add(1);
        if times < YIELDS {
            kernel::yield_now();
        } else if let Some(held) = receiver_lock::take_soon_to_send(slot) {
            lock::release(outgoing.receiver_lock(), held);
            return true;
        } else if !must {
            return false;
        }
    }
    true
}

/// Whether the other end waits for bytes that only this end can take back.
pub fn is_due(slot: &Slot) -> bool {
    let outgoing = slot.mapping().outgoing;
    outgoing.is_left() && outgoing.mode() == Mode::Ring
}

/// Whether there is anything to do for `serve`.
pub fn has_work(slot: &Slot) -> bool {
    is_due(slot) || slot.mapping().outgoing.backlog().is_some()
}

/// Sends through TCP for good what this end has left in the ring, if the other end wants that.
pub fn serve(slot: &Slot) {
    if has_work(slot) {
        let Some(held) = sender_lock::take(slot) else { return };
        if let Some(fd) = slot.any_descriptor() {
            serve_locked(fd, slot);
        }
        lock::release(slot.mapping().outgoing.sender_lock(), held);
    }
}

/// Does something with a descriptor of the connection under the sender's lock; `None` if there is
/// none, or another thread has the lock.
pub fn while_locked<T>(slot: &Slot, what: impl FnOnce(c_int) -> T) -> Option<T> {
    let lock = slot.mapping().outgoing.sender_lock();
    let held = lock::take_soon(lock)?;
    let done = slot.any_descriptor().map(what);
    lock::release(lock, held);
    done
}

/// The other end has written what no correct one does.
pub fn reset(fd: c_int) {
    kernel::reset(fd);
    state::count(Counter::Reset, 1);
}

pub fn serve_locked(fd: c_int, slot: &Slot) {
    if try_serve(fd, slot).is_err() {
        reset(fd);
    }
}

pub fn try_serve(fd: c_int, slot: &Slot) -> Result<(), Corrupt> {
    if is_due(slot) {
        let reason = slot.mapping().outgoing.left_because();
        slot.sends_tcp.store(reason as u32, Relaxed);
        to_tcp(fd, slot, Unread::TakenBackOrLater, reason)?;
    }
    push(fd, slot);
    Ok(())
}

/// Writes the backlog to TCP, as far as that accepts it. Under the sender's lock.
pub fn push(fd: c_int, slot: &Slot) {
    let outgoing = slot.mapping().outgoing;
    if slot.ends.load(Relaxed) == slots::DELIVERED {
        return;
    }
    while outgoing.backlog().is_some() {
        match uninterrupted(|| push_once(fd, slot)) {
            Ok(sent) => state::count(Counter::TcpSent, sent as u64),
            Err(Errno(libc::EINTR)) => {}
            Err(Errno(libc::EAGAIN)) => {
                // An other end that is linked finds the rest in the ring.
                if outgoing.is_left() {
                    slot.guard(fd);
                }
                return;
            }
            Err(Errno(libc::EBADF | libc::ENOMEM)) => return,
            // The other end has closed the connection: nothing can reach it. The program is to see
            // the error, which the kernel reports once.
            Err(Errno(error)) => {
                outgoing.forget_backlog();
                if error != libc::EPIPE {
                    slot.error.store(error, Relaxed);
                }
            }
        }
    }
    slot.unguard(fd);
}

fn push_once(fd: c_int, slot: &Slot) -> Result<usize, Errno> {
    let outgoing = slot.mapping().outgoing;
    let Some(backlog) = outgoing.backlog() else { return Ok(0) };
    let capacity = outgoing.capacity();
    let ring = slot.ring(DirectionIndex::Outgoing, capacity).ok_or(Errno(libc::ENOMEM))?;
    outgoing.begin_write();
    let sent = kernel::send(fd, &ring_iovecs(ring, capacity, backlog.0, backlog.1));
    outgoing.end_write(sent.unwrap_or(0) as u64);
    if outgoing.backlog().is_none() {
        outgoing.forget_backlog();
    }
    sent
}

/// The program ends what it sends: errors are the kernel's from now on. Waits until TCP has all
/// bytes that must go before.
pub fn finish(slot: &Slot, reason: Reason) {
    let outgoing = slot.mapping().outgoing;
    loop {
        let Some(held) = sender_lock::take(slot) else { return };
        let fd = slot.any_descriptor().unwrap_or(-1);
        slot.sends_tcp.store(reason as u32, Relaxed);
        let finished = finish_locked(fd, slot, reason);
        if finished.is_err() {
            reset(fd);
        }
        lock::release(outgoing.sender_lock(), held);
        if fd < 0 || finished.is_err() || outgoing.backlog().is_none() {
            return;
        }
        kernel::wait_writable(fd, WRITABLE_TIMEOUT);
    }
}

/// As `finish`, without waiting: whether TCP has all bytes. If not, `service` ends the stream.
pub fn finish_soon(slot: &Slot) -> bool {
    let outgoing = slot.mapping().outgoing;
    let Some(held) = sender_lock::take(slot) else { return true };
    let fd = slot.any_descriptor().unwrap_or(-1);
    let reason = Reason::ShutWriting;
    slot.sends_tcp.store(reason as u32, Relaxed);
    if try_serve(fd, slot).and_then(|()| to_tcp(fd, slot, Unread::TakenBack, reason)).is_err() {
        reset(fd);
    }
    let has_all = outgoing.backlog().is_none();
    if !has_all {
        slot.ends.store(slots::ENDS, Relaxed);
    }
    lock::release(outgoing.sender_lock(), held);
    has_all
}

/// As `finish`, but the program may go on to send.
pub fn settle(fd: c_int, slot: &Slot, reason: Reason) {
    let outgoing = slot.mapping().outgoing;
    if let Some(held) = lock::take_soon(outgoing.sender_lock()) {
        if finish_locked(fd, slot, reason).is_err() {
            reset(fd);
        }
        lock::release(outgoing.sender_lock(), held);
    }
}

/// Bytes of the ring that TCP does not take at once stay there: the receiver reads them.
fn finish_locked(fd: c_int, slot: &Slot, reason: Reason) -> Result<(), Corrupt> {
    let outgoing = slot.mapping().outgoing;
    try_serve(fd, slot)?;
    let has_room = outgoing.mode() == Mode::Ring && kernel::has_room(fd, outgoing.unread());
    to_tcp(fd, slot, if has_room { Unread::TakenBack } else { Unread::Left }, reason)
}

/// The connection is closed: takes back what the receiver has not read, because only this end can
/// send it through TCP. If TCP does not take it at once and `keeps` has a copy of the descriptor, the
/// service thread has the rest. Whether nothing is left to be done.
pub fn end(slot: &Slot, keeps: impl FnOnce(c_int) -> bool) -> bool {
    let outgoing = slot.mapping().outgoing;
    let ended = while_locked(slot, |fd| {
        let reason = Reason::Closed;
        slot.sends_tcp.store(reason as u32, Relaxed);
        let ended =
            try_serve(fd, slot).and_then(|()| to_tcp(fd, slot, Unread::TakenBackOrLater, reason));
        if ended.is_ok() && outgoing.backlog().is_some() && keeps(fd) {
            slot.is_closed.store(1, Release);
        }
        ended.is_err() || outgoing.backlog().is_none()
    });
    ended.unwrap_or(true)
}
