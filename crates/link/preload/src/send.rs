// SPDX-License-Identifier: Apache-2.0
//! Sending on a linked connection.

use crate::outgoing::Source;
use crate::slots::{self, Slot, Way, pieces};
use crate::{kernel, lock, service, state};
use core::ffi::c_int;
use core::sync::atomic::Ordering::{Relaxed, Release, SeqCst};
use core::sync::atomic::fence;
use libc::{pollfd, ssize_t};
use tare_interpose::real;
use tare_link_segment::{Corrupt, Counter, Direction, Mode};
use tare_shm::syscall::Errno;

/// Flags that are carried; a call with others goes to the kernel.
pub const FLAGS: c_int =
    libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL | libc::MSG_MORE | libc::MSG_EOR | libc::MSG_CONFIRM;

/// Milliseconds that a program waits at a time for TCP to take what was taken back from the ring.
const PATIENCE: u64 = 100;

/// Bytes that the receiver can read while the sender copies the next ones.
const CHUNK: u64 = 64 << 10;

/// Nanoseconds that a sender sleeps while the receiver does not read: the kernel then waits for it.
const MOMENT: i64 = 1_000_000;

/// What one look at the ring gave.
enum Next {
    /// This number of bytes is in the ring; 0 if there are no more.
    Sent(usize),
    Failed(Errno),
    /// The ring has no room.
    Full,
    /// The rest goes to the kernel.
    Kernel,
    /// TCP has not accepted all that was taken back.
    Wait,
}

/// As sendmsg does; `rest` sends what does not go through the ring, behind this number of bytes.
pub fn send(
    fd: c_int,
    slot: &Slot,
    from: &impl Source,
    flags: c_int,
    rest: impl FnOnce(c_int, usize) -> ssize_t,
) -> ssize_t {
    let outgoing = slot.parts().outgoing;
    let returns = |fd| flags & libc::MSG_DONTWAIT != 0 || slot.is_nonblocking(fd);
    let mut done = 0;
    let mut fd = fd;
    loop {
        fd = slot.descriptor(fd);
        let held = lock::take(outgoing.sender_lock());
        let next = to_ring(fd, slot, from, done);
        lock::release(outgoing.sender_lock(), held);
        match next.unwrap_or_else(|Corrupt| broken(fd)) {
            Next::Sent(more) => {
                done += more;
                if done == from.length() || more == 0 {
                    return done as ssize_t;
                }
            }
            // Behind a part that was sent, the kernel reports no error either.
            Next::Failed(_) if done > 0 => return done as ssize_t,
            Next::Failed(Errno(error)) => {
                real::set_errno(error);
                return -1;
            }
            Next::Full => {
                if await_room(slot, returns(fd)) {
                    continue;
                }
                let held = lock::take(outgoing.sender_lock());
                slot.wants_room.store(1, Relaxed);
                let changed = to_tcp(fd, slot, Unread::TakenBack);
                let is_tcp = outgoing.backlog().is_none() && outgoing.begin_write();
                lock::release(outgoing.sender_lock(), held);
                if changed.is_err() {
                    broken(fd);
                }
                if is_tcp {
                    break;
                }
            }
            Next::Kernel => break,
            Next::Wait => {
                let waited = if returns(fd) { Err(Errno(libc::EAGAIN)) } else { await_tcp(fd) };
                match waited {
                    Ok(()) => {}
                    Err(_) if done > 0 => return done as ssize_t,
                    Err(Errno(error)) => {
                        real::set_errno(error);
                        return -1;
                    }
                }
            }
        }
    }
    let errno = real::errno();
    let result = rest(fd, done);
    end_write(outgoing, result);
    if done == 0 {
        return result;
    }
    real::set_errno(errno);
    done as ssize_t + result.max(0)
}

/// Waits until a full ring has room, or is empty if it can grow then: while the receiver reads, and
/// no longer than a moment after it last did.
fn await_room(slot: &Slot, returns: bool) -> bool {
    let parts = slot.parts();
    let outgoing = parts.outgoing;
    let full = outgoing.full();
    let grows = outgoing.can_grow() && slots::are_few();
    loop {
        let tail = outgoing.taken();
        let moved = || outgoing.taken() != tail;
        let has_room = || if grows { outgoing.unread() == 0 } else { moved() };
        if slot.room_spin.wait(outgoing, parts.incoming, has_room) {
            return true;
        }
        if returns {
            return false;
        }
        full.store(1, Relaxed);
        fence(SeqCst);
        if !moved() {
            let _ = kernel::futex_wait(full, 1, MOMENT);
        }
        full.store(0, Relaxed);
        if has_room() || !moved() {
            return has_room();
        }
    }
}

/// Waits until TCP takes bytes, as a call that sends does: a signal or SO_SNDTIMEO ends it, and the
/// thread can be cancelled.
fn await_tcp(fd: c_int) -> Result<(), Errno> {
    let most = kernel::timeout(fd, libc::SO_SNDTIMEO);
    let mut place = pollfd { fd, events: libc::POLLOUT, revents: 0 };
    let errno = real::errno();
    // SAFETY: one place.
    match unsafe { real::poll(&raw mut place, 1, most) } {
        0 => Err(Errno(libc::EAGAIN)),
        1.. => Ok(()),
        _ => {
            let error = real::errno();
            real::set_errno(errno);
            let goes_on = error == libc::EINTR && most < 0 && kernel::handlers_restart();
            if goes_on { Ok(()) } else { Err(Errno(error)) }
        }
    }
}

/// Makes a call that writes to TCP by itself, and returns how much.
pub fn through_kernel(fd: c_int, slot: &Slot, call: impl FnOnce() -> ssize_t) -> ssize_t {
    let outgoing = slot.parts().outgoing;
    loop {
        let held = lock::take(outgoing.sender_lock());
        let is_ready = try_serve(fd, slot)
            .and_then(|()| to_tcp(fd, slot, Unread::TakenBack))
            .map(|()| outgoing.backlog().is_none() && outgoing.begin_write());
        lock::release(outgoing.sender_lock(), held);
        let waited = match is_ready {
            Ok(true) => break,
            Ok(false) if slot.is_nonblocking(fd) => Err(Errno(libc::EAGAIN)),
            Ok(false) => await_tcp(fd),
            Err(Corrupt) => {
                broken(fd);
                break;
            }
        };
        if let Err(Errno(error)) = waited {
            real::set_errno(error);
            return -1;
        }
    }
    let result = call();
    end_write(outgoing, result);
    result
}

fn end_write(outgoing: &Direction, result: ssize_t) {
    let written = u64::try_from(result).unwrap_or(0);
    outgoing.end_write(written);
    state::count(Counter::TcpSent, written);
}

fn broken(fd: c_int) -> Next {
    kernel::reset(fd);
    state::count(Counter::Reset, 1);
    Next::Failed(Errno(libc::ECONNRESET))
}

fn to_ring(fd: c_int, slot: &Slot, from: &impl Source, done: usize) -> Result<Next, Corrupt> {
    let parts = slot.parts();
    let outgoing = parts.outgoing;
    if slot.ends.load(Relaxed) != 0 {
        return Ok(Next::Failed(Errno(libc::EPIPE)));
    }
    try_serve(fd, slot)?;
    if sends_tcp(slot) {
        to_tcp(fd, slot, Unread::TakenBack)?;
    }
    if outgoing.backlog().is_some() {
        return Ok(Next::Wait);
    }
    if !sends_tcp(slot) && outgoing.mode() == Mode::Tcp && outgoing.upgrade(|| kernel::written(fd))
    {
        state::count(Counter::Upgrades, 1);
    }
    if outgoing.mode() == Mode::Tcp {
        outgoing.begin_write();
        return Ok(Next::Kernel);
    }
    if slot.wants_room.load(Relaxed) != 0 && slots::are_few() {
        grow(slot);
    }
    let wanted = (from.length() - done) as u64;
    loop {
        let capacity = outgoing.capacity();
        let (head, room) = outgoing.room(capacity)?;
        if room == 0 {
            slot.wants_room.store(1, Relaxed);
            return Ok(Next::Full);
        }
        let length = room.min(wanted).min(CHUNK);
        let ring = slot.ring(Way::Outgoing, capacity).ok_or(Corrupt)?;
        let ring = pieces(ring, capacity, head, length);
        let copied = match from.read(done, &ring) {
            Ok(0) => return Ok(Next::Sent(0)),
            Ok(copied) => copied,
            Err(error) => return Ok(Next::Failed(error)),
        };
        if outgoing.publish(head, copied as u64) {
            wake(fd, slot);
            state::count(Counter::RingSent, copied as u64);
            state::count(Counter::RingSends, 1);
            return Ok(Next::Sent(copied));
        }
    }
}

fn wake(fd: c_int, slot: &Slot) {
    let outgoing = slot.parts().outgoing;
    if outgoing.bell().ring() {
        slot.ring_other();
        state::count(Counter::Wakes, 1);
        return;
    }
    let tail = outgoing.taken();
    if slot.seen_tail.swap(tail, Relaxed) != tail {
        slot.unread_sends.store(0, Relaxed);
    } else if slot.unread_sends.fetch_add(1, Relaxed).wrapping_add(1).is_power_of_two() {
        // The other end does not read: it may have ended.
        const GONE: i16 = libc::POLLRDHUP | libc::POLLERR | libc::POLLHUP;
        if kernel::events(fd, libc::POLLRDHUP) & GONE != 0 {
            slot.sends_tcp.store(1, Relaxed);
        }
    }
}

fn grow(slot: &Slot) {
    let outgoing = slot.parts().outgoing;
    if !outgoing.can_grow() || slot.ring(Way::Outgoing, outgoing.capacity() * 4).is_none() {
        return;
    }
    if let Some(held) = lock::try_take(outgoing.receiver_lock()) {
        if outgoing.grow() {
            slot.wants_room.store(0, Relaxed);
        }
        lock::release(outgoing.receiver_lock(), held);
    }
}

/// What becomes of bytes of the ring that the receiver has not read, when the stream goes to TCP.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Unread {
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
fn sends_tcp(slot: &Slot) -> bool {
    slot.sends_tcp.load(Relaxed) != 0 || slot.parts().incoming.is_left()
}

/// Whether a message goes to the ring, and finds room there.
pub fn has_room(slot: &Slot) -> bool {
    let outgoing = slot.parts().outgoing;
    let by_ring = !sends_tcp(slot)
        && outgoing.backlog().is_none()
        && outgoing.mode() == Mode::Ring
        && !outgoing.is_left();
    by_ring && outgoing.room(outgoing.capacity()).is_ok_and(|(_, room)| room > 0)
}

/// From here on bytes go to TCP. Under the sender's lock.
fn to_tcp(fd: c_int, slot: &Slot, unread: Unread) -> Result<(), Corrupt> {
    let outgoing = slot.parts().outgoing;
    if outgoing.mode() == Mode::Tcp {
        return Ok(());
    }
    let is_urgent = unread != Unread::TakenBackOrLater;
    if !await_reader(fd, outgoing, is_urgent) {
        return Ok(());
    }
    // Without its service thread, a program may never send what TCP does not take at once.
    let can_wait = !is_urgent || service::is_running();
    if outgoing.unread() > 0 && unread != Unread::Left && can_wait {
        if let Some(held) = lock::take_soon(outgoing.receiver_lock()) {
            let taken = outgoing.take_back(outgoing.capacity());
            lock::release(outgoing.receiver_lock(), held);
            state::count(Counter::Downgrades, 1);
            taken?;
            push(fd, slot);
            if outgoing.backlog().is_some() {
                service::wake_own();
            }
            return Ok(());
        }
        if !is_urgent {
            return Ok(());
        }
    }
    outgoing.downgrade();
    state::count(Counter::Downgrades, 1);
    Ok(())
}

/// Until the receiver is not between its look at the changes and its call: some microseconds. One
/// that has ended there never comes back; one that was stopped there is waited for if it `must` be.
fn await_reader(fd: c_int, outgoing: &Direction, must: bool) -> bool {
    const GONE: i16 = libc::POLLERR | libc::POLLHUP;
    const YIELDS: u32 = 1000;
    const SLEEPS: u32 = 64;
    let mut times = 0u32;
    while !outgoing.can_downgrade() {
        times = times.saturating_add(1);
        if times < YIELDS {
            kernel::yield_now();
            continue;
        }
        kernel::sleep(500);
        if times.is_multiple_of(SLEEPS) && kernel::events(fd, libc::POLLRDHUP) & GONE != 0 {
            return true;
        }
        if !must && times > YIELDS + SLEEPS {
            return false;
        }
    }
    true
}

/// Whether the other end waits for bytes that only this end can take back.
pub fn is_due(slot: &Slot) -> bool {
    let outgoing = slot.parts().outgoing;
    outgoing.is_left() && outgoing.mode() == Mode::Ring
}

/// Whether there is anything to do for `serve`.
pub fn has_work(slot: &Slot) -> bool {
    is_due(slot) || slot.parts().outgoing.backlog().is_some()
}

/// Sends through TCP for good what this end has left in the ring, if the other end wants that.
pub fn serve(fd: c_int, slot: &Slot) {
    if has_work(slot) {
        let outgoing = slot.parts().outgoing;
        let held = lock::take(outgoing.sender_lock());
        serve_locked(fd, slot);
        lock::release(outgoing.sender_lock(), held);
    }
}

/// Does something with a descriptor of the connection under the sender's lock; `None` if there is
/// none, or another thread has the lock.
pub fn while_locked<T>(slot: &Slot, what: impl FnOnce(c_int) -> T) -> Option<T> {
    let lock = slot.parts().outgoing.sender_lock();
    let held = lock::take_soon(lock)?;
    let done = slot.any_descriptor().map(what);
    lock::release(lock, held);
    done
}

pub fn serve_locked(fd: c_int, slot: &Slot) {
    if try_serve(fd, slot).is_err() {
        broken(fd);
    }
}

fn try_serve(fd: c_int, slot: &Slot) -> Result<(), Corrupt> {
    if is_due(slot) {
        slot.sends_tcp.store(1, Relaxed);
        to_tcp(fd, slot, Unread::TakenBackOrLater)?;
    }
    push(fd, slot);
    Ok(())
}

/// Writes the backlog to TCP, as far as that accepts it. Under the sender's lock.
pub fn push(fd: c_int, slot: &Slot) {
    let outgoing = slot.parts().outgoing;
    if slot.ends.load(Relaxed) == slots::DELIVERED {
        return;
    }
    while let Some(backlog) = outgoing.backlog() {
        let (from, length) = backlog;
        let capacity = outgoing.capacity();
        let Some(ring) = slot.ring(Way::Outgoing, capacity) else { return };
        let ring = pieces(ring, capacity, from, length);
        outgoing.begin_write();
        let sent = kernel::send(fd, &ring);
        outgoing.end_write(sent.unwrap_or(0) as u64);
        match sent {
            Ok(sent) => {
                outgoing.accepted(backlog, sent as u64);
                state::count(Counter::TcpSent, sent as u64);
            }
            Err(Errno(libc::EINTR)) => {}
            Err(Errno(libc::EAGAIN)) => {
                slot.guard(fd);
                return;
            }
            Err(Errno(libc::EBADF)) => return,
            // The other end has closed the connection: nothing can reach it. The program is to see
            // the error, which the kernel reports once.
            Err(Errno(error)) => {
                outgoing.accepted(backlog, length);
                if error != libc::EPIPE {
                    slot.error.store(error, Relaxed);
                }
            }
        }
    }
    slot.unguard(fd);
}

/// The program ends what it sends: errors are the kernel's from now on. Waits until TCP has all
/// bytes that must go before.
pub fn finish(fd: c_int, slot: &Slot) {
    let outgoing = slot.parts().outgoing;
    loop {
        let held = lock::take(outgoing.sender_lock());
        slot.sends_tcp.store(1, Relaxed);
        let finished = finish_locked(fd, slot);
        lock::release(outgoing.sender_lock(), held);
        if finished.is_err() {
            broken(fd);
            return;
        }
        if outgoing.backlog().is_none() {
            return;
        }
        kernel::wait_writable(fd, PATIENCE);
    }
}

/// As `finish`, without waiting: whether TCP has all bytes. If not, `service` ends the stream.
pub fn finish_soon(fd: c_int, slot: &Slot) -> bool {
    let outgoing = slot.parts().outgoing;
    let held = lock::take(outgoing.sender_lock());
    slot.sends_tcp.store(1, Relaxed);
    let finished = finish_locked(fd, slot);
    let has_all = outgoing.backlog().is_none();
    if !has_all {
        slot.ends.store(slots::ENDS, Relaxed);
    }
    lock::release(outgoing.sender_lock(), held);
    if finished.is_err() {
        broken(fd);
    }
    has_all
}

/// As `finish`, but the program may go on to send.
pub fn settle(fd: c_int, slot: &Slot) {
    let outgoing = slot.parts().outgoing;
    if let Some(held) = lock::take_soon(outgoing.sender_lock()) {
        if finish_locked(fd, slot).is_err() {
            broken(fd);
        }
        lock::release(outgoing.sender_lock(), held);
    }
}

/// Bytes of the ring that TCP does not take at once stay there: the receiver reads them.
fn finish_locked(fd: c_int, slot: &Slot) -> Result<(), Corrupt> {
    let outgoing = slot.parts().outgoing;
    try_serve(fd, slot)?;
    let has_room = outgoing.mode() == Mode::Ring && kernel::has_room(fd, outgoing.unread());
    to_tcp(fd, slot, if has_room { Unread::TakenBack } else { Unread::Left })
}

/// The connection is closed: takes back what the receiver has not read, because only this end can
/// send it through TCP. If TCP does not take it at once and `keeps` has a copy of the descriptor, the
/// service thread has the rest. Whether nothing is left to be done.
pub fn end(slot: &Slot, keeps: impl FnOnce(c_int) -> bool) -> bool {
    let outgoing = slot.parts().outgoing;
    let ended = while_locked(slot, |fd| {
        slot.sends_tcp.store(1, Relaxed);
        let ended = try_serve(fd, slot).and_then(|()| to_tcp(fd, slot, Unread::TakenBackOrLater));
        if ended.is_ok() && outgoing.backlog().is_some() && keeps(fd) {
            slot.is_closed.store(1, Release);
        }
        ended.is_err() || outgoing.backlog().is_none()
    });
    ended.unwrap_or(true)
}
