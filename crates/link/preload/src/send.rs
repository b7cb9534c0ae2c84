// SPDX-License-Identifier: Apache-2.0
//! Sending on a linked connection.

use crate::buffers::{self, Buffers};
use crate::lock::Held;
use crate::slots::{self, Slot, pieces};
use crate::{kernel, lock, state};
use core::ffi::c_int;
use core::sync::atomic::Ordering::Relaxed;
use libc::ssize_t;
use tare_interpose::real;
use tare_link_segment::{Corrupt, Counter, Direction, Mode};
use tare_shm::syscall::Errno;

/// Flags that are carried; a call with others goes to the kernel.
pub const FLAGS: c_int =
    libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL | libc::MSG_MORE | libc::MSG_EOR | libc::MSG_CONFIRM;

/// Milliseconds that a call waits at a time for TCP to take what was taken back from the ring.
const PATIENCE: u64 = 100;

/// What a call is to do after the ring was used as far as possible.
enum Next {
    Done(usize),
    Failed(Errno),
    /// The rest goes to the kernel, behind so many bytes.
    Kernel(usize),
    /// TCP has not accepted all that was taken back.
    Wait,
}

/// As sendmsg does; `rest` sends what the ring has no room for.
pub fn send(
    fd: c_int,
    slot: &Slot,
    from: &Buffers,
    flags: c_int,
    rest: impl FnOnce(&Buffers) -> ssize_t,
) -> ssize_t {
    let outgoing = slot.parts().outgoing;
    let done = loop {
        let held = lock::take(outgoing.sender_lock());
        let next = to_ring(fd, slot, from);
        lock::release(outgoing.sender_lock(), held);
        match next.unwrap_or_else(|Corrupt| broken(fd)) {
            Next::Done(length) => return length as ssize_t,
            Next::Failed(Errno(error)) => {
                real::set_errno(error);
                return -1;
            }
            Next::Kernel(done) => break done,
            Next::Wait => {
                if flags & libc::MSG_DONTWAIT != 0 || kernel::is_nonblocking(fd) {
                    real::set_errno(libc::EAGAIN);
                    return -1;
                }
                kernel::wait_writable(fd, PATIENCE);
            }
        }
    };
    let errno = real::errno();
    let result = rest(&from.skip(done));
    end_write(outgoing, result);
    if done == 0 {
        return result;
    }
    real::set_errno(errno);
    done as ssize_t + result.max(0)
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

fn to_ring(fd: c_int, slot: &Slot, from: &Buffers) -> Result<Next, Corrupt> {
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
        return Ok(Next::Kernel(0));
    }
    if slot.wants_room.load(Relaxed) != 0 && slots::are_few() {
        grow(slot);
    }
    let wanted = from.length();
    let done = loop {
        let capacity = outgoing.capacity();
        let (head, room) = outgoing.room(capacity)?;
        let length = room.min(wanted as u64);
        if length == 0 {
            break 0;
        }
        let ring = pieces(parts.outgoing_ring, capacity, head, length);
        let copied = match buffers::read(&from.first(length as usize), &ring) {
            Ok(copied) => copied,
            Err(error) => return Ok(Next::Failed(error)),
        };
        if outgoing.publish(head, copied as u64) {
            wake(fd, slot);
            state::count(Counter::RingSent, copied as u64);
            state::count(Counter::RingSends, 1);
            if copied == wanted || copied < length as usize {
                return Ok(Next::Done(copied));
            }
            break copied;
        }
    };
    slot.wants_room.store(1, Relaxed);
    to_tcp(slot);
    outgoing.begin_write();
    Ok(Next::Kernel(done))
}

fn wake(fd: c_int, slot: &Slot) {
    let bell = slot.parts().outgoing.bell();
    if bell.ring() {
        slot.ring_other();
        state::count(Counter::Wakes, 1);
    } else if bell.is_rung() {
        // The other end was woken and has not read all: it may have ended.
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

/// Until the receiver is not between its look at the changes and its call: some microseconds.
fn await_reader(outgoing: &Direction) {
    let mut times = 0u32;
    while !outgoing.can_downgrade() {
        times = times.saturating_add(1);
        if times < 1000 { kernel::yield_now() } else { kernel::sleep(500) }
    }
}

/// Sends through TCP for good what this end has left in the ring, if the other end wants that.
pub fn serve(fd: c_int, slot: &Slot) {
    let outgoing = slot.parts().outgoing;
    let is_due =
        (outgoing.is_left() && outgoing.mode() == Mode::Ring) || slot.backlog.load(Relaxed) > 0;
    if is_due {
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
