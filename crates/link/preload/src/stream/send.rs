// SPDX-License-Identifier: Apache-2.0
//! Sending on a linked connection.

use crate::links::memory::memory_limit;
use crate::links::slots::{self, DirectionIndex, Slot, ring_iovecs};
use crate::links::{receiver_lock, sender_lock};
use crate::state::lock;
use crate::stream::downgrade::{self, Unread, sends_tcp, tcp_reason};
use crate::stream::downgrade::{to_tcp, try_serve, uninterrupted};
use crate::stream::send_source::SendSource;
use crate::{kernel, state};
use core::ffi::c_int;
use core::sync::atomic::Ordering::{Relaxed, SeqCst};
use core::sync::atomic::fence;
use libc::{pollfd, ssize_t};
use tare_interpose::real;
use tare_link_segment::{Corrupt, Counter, Direction, Mode, Reason};
use tare_shm::syscall::Errno;

/// Flags that are carried; a call with others goes to the kernel.
pub const FLAGS: c_int =
    libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL | libc::MSG_MORE | libc::MSG_EOR | libc::MSG_CONFIRM;

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
    slot: &Slot,
    from: &impl SendSource,
    flags: c_int,
    rest: &dyn Fn(c_int, usize) -> ssize_t,
) -> ssize_t {
    let outgoing = slot.mapping().outgoing;
    let returns = |fd| flags & libc::MSG_DONTWAIT != 0 || slot.is_nonblocking(fd);
    let mut done = 0;
    let mut fd;
    loop {
        let held = sender_lock::take(slot);
        fd = slot.any_descriptor().unwrap_or(-1);
        // Without the lock, a thread that has it waits for TCP: this one does so, too.
        let next = held.map_or(Next::Wait, |held| {
            let next = choose_way(fd, slot, held.is_interrupting())
                .and_then(|next| next.map_or_else(|| to_ring(fd, slot, from, done), Ok))
                .unwrap_or_else(|Corrupt| failed(fd));
            lock::release(outgoing.sender_lock(), held);
            next
        });
        match next {
            Next::Sent(more) => {
                done += more;
                if done == from.length() || more == 0 {
                    return done as ssize_t;
                }
            }
            // Behind a part that was sent, the kernel reports no error either.
            Next::Failed(_) if done > 0 => return done as ssize_t,
            Next::Failed(Errno(libc::EPIPE)) => return broken_pipe(flags),
            Next::Failed(Errno(error)) => {
                real::set_errno(error);
                return -1;
            }
            Next::Full => {
                if await_room(slot, returns(fd)) {
                    continue;
                }
                let Some(held) = sender_lock::take(slot) else { continue };
                fd = slot.any_descriptor().unwrap_or(-1);
                slot.wants_room.store(1, Relaxed);
                if to_tcp(fd, slot, Unread::TakenBack, Reason::Full).is_err() {
                    downgrade::reset(fd);
                }
                let is_tcp = outgoing.backlog().is_none() && outgoing.begin_write();
                lock::release(outgoing.sender_lock(), held);
                if is_tcp {
                    break;
                }
            }
            Next::Kernel => break,
            Next::Wait => {
                let waited =
                    if returns(fd) { Err(Errno(libc::EAGAIN)) } else { await_tcp(fd, slot) };
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
    let mapping = slot.mapping();
    let outgoing = mapping.outgoing;
    let full = outgoing.full_futex();
    let grows = outgoing.can_grow() && memory_limit::has_room(3 * outgoing.capacity());
    loop {
        let tail = outgoing.tail();
        let moved = || outgoing.tail() != tail;
        let has_room = || if grows { outgoing.unread() == 0 } else { moved() };
        if slot.room_spin.wait(outgoing, mapping.incoming, &has_room) {
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
fn await_tcp(fd: c_int, slot: &Slot) -> Result<(), Errno> {
    let most = kernel::timeout(fd, libc::SO_SNDTIMEO);
    let mut place = pollfd { fd, events: libc::POLLOUT, revents: 0 };
    let errno = real::errno();
    slot.begin_wait();
    // SAFETY: one place.
    let ready = unsafe { real::poll(&raw mut place, 1, most) };
    slot.end_wait();
    match ready {
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

/// The program has ended the stream before.
fn broken_pipe(flags: c_int) -> ssize_t {
    if flags & libc::MSG_NOSIGNAL == 0 {
        kernel::raise(libc::SIGPIPE);
    }
    real::set_errno(libc::EPIPE);
    -1
}

/// Makes a call that writes to TCP by itself, and returns how much.
pub fn through_kernel(slot: &Slot, flags: c_int, call: &dyn Fn() -> ssize_t) -> ssize_t {
    let outgoing = slot.mapping().outgoing;
    let reason = if flags & libc::MSG_OOB != 0 { Reason::Urgent } else { Reason::Call };
    loop {
        if slot.ends.load(Relaxed) == slots::ENDS {
            return broken_pipe(flags);
        }
        let fd = slot.any_descriptor().unwrap_or(-1);
        let (changed, is_ready) = sender_lock::take(slot).map_or((Ok(()), false), |held| {
            let changed =
                try_serve(fd, slot).and_then(|()| to_tcp(fd, slot, Unread::TakenBack, reason));
            if changed.is_err() {
                downgrade::reset(fd);
            }
            let is_ready = outgoing.backlog().is_none() && outgoing.begin_write();
            lock::release(outgoing.sender_lock(), held);
            (changed, is_ready)
        });
        let waited = match changed {
            Ok(()) if is_ready => break,
            Ok(()) if slot.is_nonblocking(fd) => Err(Errno(libc::EAGAIN)),
            Ok(()) => await_tcp(fd, slot),
            Err(Corrupt) => break,
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

/// The other end has written what no correct one does.
fn failed(fd: c_int) -> Next {
    downgrade::reset(fd);
    Next::Failed(Errno(libc::ECONNRESET))
}

/// Lets the stream be in the ring or at TCP. Returns what to do in place of `to_ring`. A signal handler
/// that has interrupted a call which sends takes it back to TCP at most: that call finds it there.
fn choose_way(fd: c_int, slot: &Slot, is_interrupting: bool) -> Result<Option<Next>, Corrupt> {
    let outgoing = slot.mapping().outgoing;
    if fd < 0 {
        return Ok(Some(Next::Failed(Errno(libc::EBADF))));
    }
    if slot.ends.load(Relaxed) != 0 {
        return Ok(Some(Next::Failed(Errno(libc::EPIPE))));
    }
    try_serve(fd, slot)?;
    let obstacle = if sends_tcp(slot) {
        Some(tcp_reason(slot))
    } else if !slot.memory.try_charge(outgoing.head(), outgoing.capacity()) {
        Some(Reason::Limit)
    } else {
        (is_interrupting && slot.interruptible_copy.is_in_progress()).then_some(Reason::Handler)
    };
    if let Some(reason) = obstacle {
        to_tcp(fd, slot, Unread::TakenBack, reason)?;
    }
    if is_interrupting {
        return Ok(None);
    }
    let can_upgrade = obstacle.is_none()
        && outgoing.mode() == Mode::Tcp
        && outgoing.backlog().is_none()
        && outgoing.can_upgrade();
    if can_upgrade && uninterrupted(|| outgoing.upgrade(|| kernel::written(fd))) {
        state::count(Counter::Upgrades, 1);
    }
    if outgoing.mode() == Mode::Ring && slot.wants_room.load(Relaxed) != 0 {
        grow(slot);
    }
    Ok(None)
}

fn to_ring(fd: c_int, slot: &Slot, from: &impl SendSource, done: usize) -> Result<Next, Corrupt> {
    let outgoing = slot.mapping().outgoing;
    loop {
        if outgoing.mode() == Mode::Tcp {
            let is_ready = outgoing.backlog().is_none() && outgoing.begin_write();
            return Ok(if is_ready { Next::Kernel } else { Next::Wait });
        }
        slot.interruptible_copy.begin();
        let next = copy(slot, from, done);
        slot.interruptible_copy.end();
        if let Some(next) = next? {
            if let Next::Sent(copied @ 1..) = next {
                wake(fd, slot);
                state::count(Counter::RingSent, copied as u64);
                state::count(Counter::RingSends, 1);
            }
            return Ok(next);
        }
    }
}

/// Copies to the ring; `None` if a signal handler has sent meanwhile.
fn copy(slot: &Slot, from: &impl SendSource, done: usize) -> Result<Option<Next>, Corrupt> {
    let outgoing = slot.mapping().outgoing;
    if outgoing.mode() == Mode::Tcp {
        return Ok(None);
    }
    let capacity = outgoing.capacity();
    let (head, room) = outgoing.room(capacity)?;
    if room == 0 {
        slot.wants_room.store(1, Relaxed);
        return Ok(Some(Next::Full));
    }
    let length = room.min((from.length() - done) as u64).min(CHUNK);
    let length = slot.memory.try_charge_part(head, length, capacity);
    if length == 0 && from.length() > done {
        return Ok(Some(Next::Full));
    }
    let ring = slot.ring(DirectionIndex::Outgoing, capacity).ok_or(Corrupt)?;
    let ring = ring_iovecs(ring, capacity, head, length);
    let copied = match from.read(done, &ring) {
        Ok(0) => return Ok(Some(Next::Sent(0))),
        Ok(copied) => copied,
        Err(error) => return Ok(Some(Next::Failed(error))),
    };
    if slot.interruptible_copy.invalidated_at().is_some() || !outgoing.publish(head, copied as u64)
    {
        return Ok(None);
    }
    // In between: the receiver does not read them.
    if slot.interruptible_copy.invalidated_at() == Some(head) {
        outgoing.unpublish(head, copied as u64);
        return Ok(None);
    }
    Ok(Some(Next::Sent(copied)))
}

fn wake(fd: c_int, slot: &Slot) {
    let outgoing = slot.mapping().outgoing;
    if outgoing.doorbell().ring() {
        slot.wake_other();
        state::count(Counter::Wakes, 1);
        return;
    }
    let tail = outgoing.tail();
    if slot.seen_tail.load(Relaxed) != tail {
        slot.seen_tail.store(tail, Relaxed);
        slot.unread_sends.store(0, Relaxed);
    } else if slot.unread_sends.fetch_add(1, Relaxed).wrapping_add(1).is_power_of_two() {
        // The other end does not read: it may have ended.
        if kernel::has_ended(fd) {
            slot.sends_tcp.store(Reason::OtherClosed as u32, Relaxed);
        }
    }
}

fn grow(slot: &Slot) {
    let outgoing = slot.mapping().outgoing;
    let capacity = outgoing.capacity();
    if !outgoing.can_grow()
        || slots::must_stay_small()
        || slot.ring(DirectionIndex::Outgoing, capacity * 4).is_none()
    {
        return;
    }
    if outgoing.unread() == 0 && uninterrupted(|| grow_empty(slot, capacity)) {
        slot.wants_room.store(0, Relaxed);
    }
}

fn grow_empty(slot: &Slot, capacity: u64) -> bool {
    let outgoing = slot.mapping().outgoing;
    let Some(held) = receiver_lock::try_take_to_send(slot) else { return false };
    let has_grown =
        outgoing.unread() == 0 && slot.memory.try_charge_all(4 * capacity) && outgoing.grow();
    lock::release(outgoing.receiver_lock(), held);
    has_grown
}

/// Whether a message goes to the ring, and finds room there.
pub fn has_room(slot: &Slot) -> bool {
    let outgoing = slot.mapping().outgoing;
    let by_ring = !sends_tcp(slot)
        && outgoing.backlog().is_none()
        && outgoing.mode() == Mode::Ring
        && !outgoing.is_left();
    by_ring && outgoing.room(outgoing.capacity()).is_ok_and(|(_, room)| room > 0)
}
