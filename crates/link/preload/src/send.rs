// SPDX-License-Identifier: Apache-2.0
//! Sending on a linked connection.

use crate::lock::Held;
use crate::outgoing::Source;
use crate::slots::{self, Slot, pieces};
use crate::{kernel, lock, state};
use core::ffi::c_int;
use core::sync::atomic::Ordering::{Relaxed, SeqCst};
use core::sync::atomic::fence;
use libc::ssize_t;
use tare_interpose::real;
use tare_link_segment::{Corrupt, Counter, Direction, Mode};
use tare_shm::syscall::Errno;

/// Flags that are carried; a call with others goes to the kernel.
pub const FLAGS: c_int =
    libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL | libc::MSG_MORE | libc::MSG_EOR | libc::MSG_CONFIRM;

/// Milliseconds that a call waits at a time for TCP to take what was taken back from the ring.
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
                to_tcp(slot);
                let is_tcp = slot.backlog.load(Relaxed) == 0 && outgoing.begin_write();
                lock::release(outgoing.sender_lock(), held);
                if is_tcp {
                    break;
                }
            }
            Next::Kernel => break,
            Next::Wait => {
                if returns(fd) {
                    if done > 0 {
                        return done as ssize_t;
                    }
                    real::set_errno(libc::EAGAIN);
                    return -1;
                }
                kernel::wait_writable(fd, PATIENCE);
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

/// Makes a call that writes to TCP by itself, and returns how much.
pub fn through_kernel(fd: c_int, slot: &Slot, call: impl FnOnce() -> ssize_t) -> ssize_t {
    let outgoing = slot.parts().outgoing;
    loop {
        let held = lock::take(outgoing.sender_lock());
        let is_ready = serve_locked(fd, slot).map(|()| {
            to_tcp(slot);
            slot.backlog.load(Relaxed) == 0 && outgoing.begin_write()
        });
        lock::release(outgoing.sender_lock(), held);
        match is_ready {
            Ok(true) => break,
            Ok(false) => kernel::wait_writable(fd, PATIENCE),
            Err(Corrupt) => {
                broken(fd);
                break;
            }
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
    serve_locked(fd, slot)?;
    if slot.backlog.load(Relaxed) > 0 {
        return Ok(Next::Wait);
    }
    if slot.sends_tcp.load(Relaxed) != 0 {
        to_tcp(slot);
    } else if outgoing.mode() == Mode::Tcp && outgoing.upgrade(|| kernel::written(fd)) {
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
        let ring = pieces(parts.outgoing_ring, capacity, head, length);
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
    if let Some(held) = lock::try_take(outgoing.receiver_lock()) {
        if outgoing.grow() {
            slot.wants_room.store(0, Relaxed);
        }
        lock::release(outgoing.receiver_lock(), held);
    }
}

/// From here on bytes go to TCP. Under the lock.
fn to_tcp(slot: &Slot) {
    let outgoing = slot.parts().outgoing;
    if outgoing.mode() == Mode::Ring {
        await_reader(outgoing);
        outgoing.downgrade();
        state::count(Counter::Downgrades, 1);
    }
}

/// Whether a message goes to the ring, and finds room there.
pub fn has_room(slot: &Slot) -> bool {
    let outgoing = slot.parts().outgoing;
    let by_ring = slot.sends_tcp.load(Relaxed) == 0
        && slot.backlog.load(Relaxed) == 0
        && outgoing.mode() == Mode::Ring
        && !outgoing.is_left();
    by_ring && outgoing.room(outgoing.capacity()).is_ok_and(|(_, room)| room > 0)
}

/// Until the receiver is not between its look at the changes and its call: some microseconds.
fn await_reader(outgoing: &Direction) {
    let mut times = 0u32;
    while !outgoing.can_downgrade() {
        times = times.saturating_add(1);
        if times < 1000 { kernel::yield_now() } else { kernel::sleep(500) }
    }
}

/// Whether the other end waits for bytes that only this end can take back.
pub fn is_due(slot: &Slot) -> bool {
    let outgoing = slot.parts().outgoing;
    outgoing.is_left() && outgoing.mode() == Mode::Ring
}

/// Sends through TCP for good what this end has left in the ring, if the other end wants that.
pub fn serve(fd: c_int, slot: &Slot) {
    let outgoing = slot.parts().outgoing;
    if is_due(slot) || slot.backlog.load(Relaxed) > 0 {
        let held = lock::take(outgoing.sender_lock());
        if serve_locked(fd, slot).is_err() {
            broken(fd);
        }
        lock::release(outgoing.sender_lock(), held);
    }
}

fn serve_locked(fd: c_int, slot: &Slot) -> Result<(), Corrupt> {
    let outgoing = slot.parts().outgoing;
    if outgoing.is_left() && outgoing.mode() == Mode::Ring {
        await_reader(outgoing);
        let held: Held = lock::take(outgoing.receiver_lock());
        let taken = outgoing.take_back(outgoing.capacity());
        lock::release(outgoing.receiver_lock(), held);
        let (from, length) = taken?;
        slot.sends_tcp.store(1, Relaxed);
        slot.backlog_at.store(from, Relaxed);
        slot.backlog.store(length, Relaxed);
        state::count(Counter::Downgrades, 1);
    }
    while slot.backlog.load(Relaxed) > 0 {
        let (from, length) = (slot.backlog_at.load(Relaxed), slot.backlog.load(Relaxed));
        let ring = pieces(slot.parts().outgoing_ring, outgoing.capacity(), from, length);
        outgoing.begin_write();
        let sent = kernel::send(fd, &ring);
        outgoing.end_write(sent.unwrap_or(0) as u64);
        match sent {
            Ok(sent) => {
                slot.backlog_at.store(from.wrapping_add(sent as u64), Relaxed);
                slot.backlog.store(length.saturating_sub(sent as u64), Relaxed);
                state::count(Counter::TcpSent, sent as u64);
            }
            Err(Errno(libc::EINTR)) => {}
            Err(Errno(libc::EAGAIN)) if slot.is_shared() => kernel::wait_writable(fd, PATIENCE),
            Err(Errno(libc::EAGAIN)) => break,
            // The other end has closed the connection: nothing can reach it. The program is to see
            // the error, which the kernel reports once.
            Err(Errno(error)) => {
                slot.backlog.store(0, Relaxed);
                if error != libc::EPIPE {
                    slot.error.store(error, Relaxed);
                }
            }
        }
    }
    Ok(())
}

/// The program ends what it sends: errors are the kernel's from now on.
pub fn finish(fd: c_int, slot: &Slot) {
    through_kernel(fd, slot, || {
        slot.sends_tcp.store(1, Relaxed);
        0
    });
}
