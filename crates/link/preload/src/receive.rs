// SPDX-License-Identifier: Apache-2.0
//! Receiving on a linked connection.

use crate::buffers::{self, Buffers};
use crate::slots::{Slot, Way, pieces};
use crate::{kernel, lock, members, send, state};
use core::ffi::c_int;
use core::sync::atomic::Ordering::Relaxed;
use libc::{iovec, pollfd};
use tare_interpose::real;
use tare_link_segment::{Corrupt, Counter, Direction, Source};
use tare_shm::syscall::Errno;

/// Flags that are carried; a call with others concerns the kernel alone.
pub const FLAGS: c_int = libc::MSG_PEEK
    | libc::MSG_WAITALL
    | libc::MSG_DONTWAIT
    | libc::MSG_TRUNC
    | libc::MSG_NOSIGNAL
    | libc::MSG_CMSG_CLOEXEC;

/// What one look at a connection gave.
enum Step {
    Got(usize),
    /// The ring is empty; the kernel was not asked.
    Empty,
    /// Nothing yet.
    Nothing,
    /// The end of the stream.
    End,
    Failed(Errno),
}

/// As recvmsg does.
pub fn receive(fd: c_int, slot: &Slot, into: &Buffers, flags: c_int) -> Result<usize, Errno> {
    let mut has_waited = false;
    let result = receive_or_wait(fd, slot, into, flags, &mut has_waited);
    if has_waited {
        slot.end_wait();
    }
    result
}

fn receive_or_wait(
    fd: c_int,
    slot: &Slot,
    into: &Buffers,
    flags: c_int,
    has_waited: &mut bool,
) -> Result<usize, Errno> {
    let wanted = into.length();
    let waits_for_all = flags & libc::MSG_WAITALL != 0 && flags & libc::MSG_PEEK == 0;
    let mut got = 0;
    let mut timeout = None;
    let mut asks_kernel = false;
    loop {
        let fd = slot.descriptor(fd);
        send::serve(fd, slot);
        let followed = slot.parts().incoming.followed();
        match step(fd, slot, into, got, flags, asks_kernel) {
            Step::Got(more) => {
                got += more;
                // Behind the last byte before a change, the kernel's call would go on.
                let changed = || slot.parts().incoming.changes_since(followed) > 0;
                let goes_on = waits_for_all || flags & libc::MSG_PEEK == 0 && changed();
                if flags & libc::MSG_PEEK != 0 && got < wanted && changed() {
                    return Ok(got + peek_on(slot, into, got, flags));
                }
                if got >= wanted || !goes_on {
                    return Ok(got);
                }
                asks_kernel = false;
                continue;
            }
            Step::End => return Ok(got),
            Step::Failed(_) if got > 0 => return Ok(got),
            Step::Failed(error) => return Err(error),
            Step::Empty | Step::Nothing if got > 0 && !waits_for_all => return Ok(got),
            Step::Empty => {
                let returns = flags & libc::MSG_DONTWAIT != 0 || slot.is_nonblocking(fd);
                if returns {
                    asks_kernel = true;
                    continue;
                }
                if spin(slot) {
                    continue;
                }
            }
            Step::Nothing => {
                if flags & libc::MSG_DONTWAIT != 0 || slot.is_nonblocking(fd) {
                    return if got > 0 { Ok(got) } else { Err(Errno(libc::EAGAIN)) };
                }
            }
        }
        if !*has_waited {
            slot.begin_wait();
            *has_waited = true;
        }
        let most = *timeout.get_or_insert_with(|| kernel::timeout(fd, libc::SO_RCVTIMEO));
        match wait(fd, slot, most) {
            Err(_) if got > 0 => return Ok(got),
            Err(error) => return Err(error),
            Ok(by_kernel) => asks_kernel = by_kernel,
        }
    }
}

/// A call without room waits for bytes, as the kernel's does, and leaves them.
pub fn await_any(fd: c_int, slot: &Slot, flags: c_int) -> Result<usize, Errno> {
    let mut byte = 0u8;
    let into = Buffers::one((&raw mut byte).cast(), 1);
    receive(fd, slot, &into, flags & !libc::MSG_TRUNC | libc::MSG_PEEK).map(|_| 0)
}

/// Waits some microseconds for bytes.
fn spin(slot: &Slot) -> bool {
    let parts = slot.parts();
    let incoming = parts.incoming;
    slot.bytes_spin.wait(parts.outgoing, incoming, || incoming.has_news())
}

/// Until there may be something: a point where the thread can be cancelled. Returns whether the
/// kernel has something to say.
fn wait(fd: c_int, slot: &Slot, most: c_int) -> Result<bool, Errno> {
    let mut places =
        [fd, slot.own_bell()].map(|fd| pollfd { fd, events: libc::POLLIN, revents: 0 });
    if slot.parts().outgoing.backlog().is_some() {
        places[0].events |= libc::POLLOUT;
    }
    if falls_asleep(slot) {
        wakes_up(slot);
        return Ok(false);
    }
    let errno = real::errno();
    // SAFETY: two places.
    let ready = unsafe { real::poll(places.as_mut_ptr(), 2, most) };
    wakes_up(slot);
    match ready {
        0 => Err(Errno(libc::EAGAIN)),
        1.. => Ok(places[0].revents != 0),
        _ => {
            let error = real::errno();
            real::set_errno(errno);
            let goes_on = error == libc::EINTR && most < 0 && kernel::handlers_restart();
            if goes_on { Ok(false) } else { Err(Errno(error)) }
        }
    }
}

/// Before a thread waits for the eventfd: arms the bell. Returns whether there is something to do
/// at once. A thread that never comes to `wakes_up` (it was cancelled) leaves the bell armed.
pub fn falls_asleep(slot: &Slot) -> bool {
    slot.parts().incoming.sleepers().fetch_add(1, Relaxed);
    is_readable(slot) || send::is_due(slot)
}

pub fn wakes_up(slot: &Slot) {
    let fewer = |sleepers: u32| sleepers.checked_sub(1);
    let _ = slot.parts().incoming.sleepers().fetch_update(Relaxed, Relaxed, fewer);
}

fn step(
    fd: c_int,
    slot: &Slot,
    into: &Buffers,
    skipped: usize,
    flags: c_int,
    asks_kernel: bool,
) -> Step {
    let incoming = slot.parts().incoming;
    let held = lock::take(incoming.receiver_lock());
    let step = locked(fd, slot, into, skipped, flags, asks_kernel);
    lock::release(incoming.receiver_lock(), held);
    match step {
        Ok(step) => step,
        Err(Corrupt) => {
            kernel::reset(fd);
            state::count(Counter::Reset, 1);
            Step::Failed(Errno(libc::ECONNRESET))
        }
    }
}

fn locked(
    fd: c_int,
    slot: &Slot,
    into: &Buffers,
    skipped: usize,
    flags: c_int,
    asks_kernel: bool,
) -> Result<Step, Corrupt> {
    let incoming = slot.parts().incoming;
    loop {
        let capacity = incoming.capacity();
        match incoming.source(capacity)? {
            Source::Ring { from, length } => {
                let room = (into.length() - skipped) as u64;
                let ring = slot.ring(Way::Incoming, capacity).ok_or(Corrupt)?;
                let ring = pieces(ring, capacity, from, length.min(room));
                let seen = from.wrapping_add(length);
                if let Some(step) = from_ring(slot, into, skipped, flags, (from, seen), &ring) {
                    return Ok(step);
                }
            }
            Source::Empty if !asks_kernel => return Ok(Step::Empty),
            Source::Empty => {
                if let Some(step) = at_the_end(fd, slot)? {
                    return Ok(step);
                }
            }
            Source::Tcp(_) => {
                if let Some(step) = from_tcp(fd, slot, into, skipped, flags)? {
                    return Ok(step);
                }
            }
        }
    }
}

/// Reads from TCP; `None` if the stream has changed.
fn from_tcp(
    fd: c_int,
    slot: &Slot,
    into: &Buffers,
    skipped: usize,
    flags: c_int,
) -> Result<Option<Step>, Corrupt> {
    let incoming = slot.parts().incoming;
    let capacity = incoming.capacity();
    incoming.begin_read();
    let most = match incoming.source(capacity) {
        // No byte of the ring is between TCP's.
        Ok(Source::Tcp(_)) if flags & libc::MSG_PEEK != 0 && incoming.unread() == 0 => usize::MAX,
        Ok(Source::Tcp(most)) => usize::try_from(most).unwrap_or(usize::MAX),
        other => {
            incoming.end_read(0);
            return other.map(|_| None);
        }
    };
    let kept = flags & (libc::MSG_PEEK | libc::MSG_TRUNC);
    let rest = into.part(skipped, most);
    let got = kernel::receive(fd, &rest, kept);
    let is_read = flags & libc::MSG_PEEK == 0;
    incoming.end_read(if is_read { got.unwrap_or(0) as u64 } else { 0 });
    Ok(Some(match got {
        Ok(0) if rest.length() > 0 => {
            // Bytes of the ring may have been published before the end.
            if !matches!(incoming.source(capacity)?, Source::Tcp(_)) {
                return Ok(None);
            }
            end(slot)
        }
        Ok(got) => {
            if is_read {
                state::count(Counter::TcpReceived, got as u64);
            }
            // It was rung for bytes that were taken back from the ring.
            let has_number = incoming.bell().is_rung() || slot.is_added.load(Relaxed) != 0;
            if is_armed(slot) && has_number {
                settle(slot)?;
            }
            Step::Got(got)
        }
        Err(Errno(libc::EAGAIN)) => {
            if !matches!(incoming.source(capacity)?, Source::Tcp(_)) || !is_settled(slot)? {
                return Ok(None);
            }
            Step::Nothing
        }
        Err(error) => {
            if matches!(incoming.source(capacity)?, Source::Ring { .. }) {
                slot.error.store(error.0, Relaxed);
                return Ok(None);
            }
            Step::Failed(error)
        }
    }))
}

/// Reads bytes of the ring, or the first of them; `None` if a signal handler has read them meanwhile.
fn from_ring(
    slot: &Slot,
    into: &Buffers,
    skipped: usize,
    flags: c_int,
    (from, seen): (u64, u64),
    ring: &[iovec; 2],
) -> Option<Step> {
    let incoming = slot.parts().incoming;
    let length = ring[0].iov_len + ring[1].iov_len;
    let got = if flags & libc::MSG_TRUNC != 0 {
        Ok(length)
    } else {
        buffers::write(ring, &into.part(skipped, length))
    };
    let got = match got {
        Ok(got) => got,
        Err(error) => return Some(Step::Failed(error)),
    };
    if flags & libc::MSG_PEEK == 0 {
        if !incoming.consume(from, got as u64) {
            return None;
        }
        state::count(Counter::RingReceived, got as u64);
        state::count(Counter::RingReceives, 1);
        wake_sender(incoming);
        rests(slot, seen);
    }
    Some(Step::Got(got))
}

/// Behind all of TCP's bytes before a change, which were peeked at: peeks at those of the ring.
fn peek_on(slot: &Slot, into: &Buffers, skipped: usize, flags: c_int) -> usize {
    let incoming = slot.parts().incoming;
    let held = lock::take(incoming.receiver_lock());
    let capacity = incoming.capacity();
    let is_next = incoming.source(capacity) == Ok(Source::Tcp(skipped as u64))
        && incoming.changes_since(incoming.followed()) == 1;
    let length = incoming.unread().min((into.length() - skipped) as u64);
    let mut peeked = 0;
    if is_next
        && length <= capacity
        && let Some(ring) = slot.ring(Way::Incoming, capacity)
    {
        peeked = if flags & libc::MSG_TRUNC != 0 {
            length as usize
        } else {
            let ring = pieces(ring, capacity, incoming.taken(), length);
            buffers::write(&ring, &into.part(skipped, length as usize)).unwrap_or(0)
        };
    }
    lock::release(incoming.receiver_lock(), held);
    peeked
}

/// The sender sleeps until at least half of the ring is free.
fn wake_sender(incoming: &Direction) {
    let full = incoming.full();
    if full.load(Relaxed) != 0
        && incoming.unread() <= incoming.capacity() / 2
        && full.swap(0, Relaxed) != 0
    {
        kernel::futex_wake(full);
    }
}

/// After bytes of the ring were read. Sets must see whether there are more; threads that sleep
/// still need the bell. Where there are neither, the next bytes need not ring it.
fn rests(slot: &Slot, seen: u64) {
    let incoming = slot.parts().incoming;
    let bell = incoming.bell();
    if is_armed(slot) {
        let _ = settle(slot);
        // An edge, of bytes that the program does not know of.
        if slot.has_edges.load(Relaxed) != 0 && incoming.head() != seen && bell.ring() {
            kernel::add(slot.own_bell());
        }
    } else if incoming.sleepers().load(Relaxed) == 0 {
        bell.disarm();
    }
}

/// Whether sets need the bell at any time.
pub fn is_armed(slot: &Slot) -> bool {
    match slot.watch.load(Relaxed) {
        0 => false,
        members::BY_WAITER => slot.is_shared(),
        _ => true,
    }
}

/// What the kernel says while the ring is empty; `None` if it is not any more.
fn at_the_end(fd: c_int, slot: &Slot) -> Result<Option<Step>, Corrupt> {
    let incoming = slot.parts().incoming;
    let capacity = incoming.capacity();
    let seen = kernel::peek(fd);
    if let Err(Errno(error)) = seen
        && error != libc::EAGAIN
    {
        // The kernel reports it once; bytes of the ring come before it.
        slot.error.store(error, Relaxed);
    }
    if !matches!(incoming.source(capacity)?, Source::Empty) {
        return Ok(None);
    }
    match seen {
        Err(Errno(libc::EAGAIN)) => Ok(is_settled(slot)?.then_some(Step::Nothing)),
        Ok(0) => Ok(Some(end(slot))),
        // Bytes of TCP's that belong nowhere: a system call that was not seen.
        Ok(_) => Err(Corrupt),
        Err(error) => {
            slot.error.store(0, Relaxed);
            Ok(Some(Step::Failed(error)))
        }
    }
}

/// The end of the stream, or the error that it ended with.
fn end(slot: &Slot) -> Step {
    slot.sends_tcp.store(1, Relaxed);
    match slot.error.swap(0, Relaxed) {
        0 => Step::End,
        error => Step::Failed(Errno(error)),
    }
}

/// Whether there is nothing to read: a set then has an armed bell. Other waits arm it themselves.
fn is_settled(slot: &Slot) -> Result<bool, Corrupt> {
    if is_armed(slot) { settle(slot) } else { Ok(true) }
}

/// Makes the bell fit the ring, so that sets report what there is: rung while there are bytes, else
/// armed and its eventfd empty. Whether the ring is empty, or TCP's turn it is. Sets that report
/// edges have an armed bell whatever the ring has: the next bytes are an edge.
fn settle(slot: &Slot) -> Result<bool, Corrupt> {
    let incoming = slot.parts().incoming;
    let bell = incoming.bell();
    let has_edges = slot.has_edges.load(Relaxed) != 0;
    let mut is_late = false;
    loop {
        let capacity = incoming.capacity();
        // A waiter reports edges by itself, without the eventfd.
        let by_waiter = has_edges && !is_armed(slot);
        let source = incoming.source(capacity)?;
        let is_next = matches!(source, Source::Ring { .. });
        // The ring's bytes are behind those of TCP: their edge may not be reported yet.
        let is_behind = has_edges && matches!(source, Source::Tcp(_)) && incoming.unread() > 0;
        if !by_waiter && (is_next || is_behind) {
            if has_edges {
                // The eventfd keeps its number: an edge that no set has reported yet stays one.
                if is_late {
                    kernel::add(slot.own_bell());
                }
                if is_late || bell.is_rung() {
                    slot.is_added.store(1, Relaxed);
                }
                bell.arm();
            } else if !bell.is_rung() {
                bell.arm();
                if bell.ring() {
                    kernel::add(slot.own_bell());
                }
            }
            return Ok(!is_next);
        }
        let is_added = slot.is_added.swap(0, Relaxed) != 0;
        if bell.is_rung() || is_added {
            // Who rings adds to it at once.
            let mut times = 0;
            while !kernel::clear(slot.own_bell()) && times < 1000 {
                times += 1;
                kernel::yield_now();
            }
        }
        bell.arm();
        let is_empty = !matches!(incoming.source(capacity)?, Source::Ring { .. });
        if is_empty || by_waiter {
            return Ok(is_empty);
        }
        // Bytes that may not have rung it.
        is_late = true;
    }
}

/// After a set has reported the eventfd: the next bytes ring again.
pub fn settle_again(slot: &Slot) {
    let incoming = slot.parts().incoming;
    let held = lock::take(incoming.receiver_lock());
    let _ = settle(slot);
    lock::release(incoming.receiver_lock(), held);
}

/// After a set got the eventfd.
pub fn settle_for_sets(slot: &Slot) {
    let incoming = slot.parts().incoming;
    let held = lock::take(incoming.receiver_lock());
    // The kernel reports what there is to a set that has changed.
    if settle(slot) == Ok(false) && incoming.bell().ring() {
        kernel::add(slot.own_bell());
    }
    lock::release(incoming.receiver_lock(), held);
}

/// Whether the ring has bytes to read; if not, its bell is armed.
pub fn is_readable(slot: &Slot) -> bool {
    let incoming = slot.parts().incoming;
    let held = lock::take(incoming.receiver_lock());
    let is_empty = settle(slot);
    lock::release(incoming.receiver_lock(), held);
    is_empty != Ok(true)
}

/// Whether the ring has bytes to read.
pub fn has_bytes(slot: &Slot) -> bool {
    let incoming = slot.parts().incoming;
    let held = lock::take(incoming.receiver_lock());
    let source = incoming.source(incoming.capacity());
    lock::release(incoming.receiver_lock(), held);
    !matches!(source, Ok(Source::Empty | Source::Tcp(_)))
}

/// Bytes that can be read (FIONREAD): of TCP and of the ring, if the stream changes between them.
pub fn waiting(fd: c_int, slot: &Slot) -> Result<u64, Errno> {
    let incoming = slot.parts().incoming;
    let held = lock::take(incoming.receiver_lock());
    let capacity = incoming.capacity();
    let source = incoming.source(capacity);
    let (changes, in_ring) =
        (incoming.changes_since(incoming.followed()), incoming.unread().min(capacity));
    lock::release(incoming.receiver_lock(), held);
    match source {
        Ok(Source::Ring { length, .. }) if changes == 0 => Ok(length),
        Ok(Source::Ring { .. } | Source::Tcp(_)) => Ok(kernel::waiting(fd)? + in_ring),
        _ => Ok(0),
    }
}
