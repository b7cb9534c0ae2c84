// SPDX-License-Identifier: Apache-2.0
//! Receiving on a linked connection.

use crate::kernel;
use crate::links::receiver_lock;
use crate::links::slots::{DirectionIndex, Slot, ring_iovecs};
use crate::stream::buffers::{self, Buffers};
use crate::stream::receive_attempt::{ReadPosition, ReceiveAttempt};
use crate::stream::receive_tcp::{end, from_tcp};
use crate::stream::{downgrade, eventfds, peek, undelivered};
use core::ffi::c_int;
use core::sync::atomic::Ordering::Relaxed;
use libc::{iovec, pollfd};
use tare_interpose::real;
use tare_link_segment::{Corrupt, Direction, Source};
use tare_shm::syscall::Errno;

/// Flags that are carried; a call with others concerns the kernel alone.
pub const FLAGS: c_int = libc::MSG_PEEK
    | libc::MSG_WAITALL
    | libc::MSG_DONTWAIT
    | libc::MSG_TRUNC
    | libc::MSG_NOSIGNAL
    | libc::MSG_CMSG_CLOEXEC;

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
    let mut place = ReadPosition::default();
    let waits_for_all = flags & libc::MSG_WAITALL != 0 && flags & libc::MSG_PEEK == 0;
    let mut got = 0;
    let mut timeout = None;
    let mut asks_kernel = false;
    loop {
        let fd = slot.any_descriptor().unwrap_or(fd);
        downgrade::serve(slot);
        let followed = slot.mapping().incoming.followed();
        match attempt(slot, into, got, flags, asks_kernel, &mut place) {
            ReceiveAttempt::Got(more) => {
                got += more;
                // Behind the last byte before a change, the kernel's call would go on.
                let incoming = slot.mapping().incoming;
                let changed = || incoming.changes_since(followed) > 0 || incoming.has_backlog();
                let goes_on = waits_for_all || flags & libc::MSG_PEEK == 0 && changed();
                place.is_next = !waits_for_all;
                if flags & libc::MSG_PEEK != 0 && got < wanted && changed() {
                    return Ok(got + peek::peek(slot, into, got, flags));
                }
                if got >= wanted || !goes_on {
                    return Ok(got);
                }
                asks_kernel = false;
                continue;
            }
            ReceiveAttempt::Passed => return Ok(got),
            ReceiveAttempt::End => return Ok(got),
            ReceiveAttempt::Failed(Errno(error)) if got > 0 => {
                // The kernel reports an error of the connection once: the next call is to see it.
                if !matches!(error, libc::EFAULT | libc::EBADF) {
                    slot.error.store(error, Relaxed);
                }
                return Ok(got);
            }
            ReceiveAttempt::Failed(error) => return Err(error),
            ReceiveAttempt::Empty | ReceiveAttempt::Nothing if got > 0 && !waits_for_all => {
                return Ok(got);
            }
            ReceiveAttempt::Empty => {
                let returns = flags & libc::MSG_DONTWAIT != 0 || slot.is_nonblocking(fd);
                if returns {
                    asks_kernel = true;
                    continue;
                }
                if spin(slot) {
                    continue;
                }
            }
            ReceiveAttempt::Nothing => {
                if flags & libc::MSG_DONTWAIT != 0 || slot.is_nonblocking(fd) {
                    return if got > 0 { Ok(got) } else { Err(Errno(libc::EAGAIN)) };
                }
            }
        }
        if !*has_waited {
            slot.begin_wait();
            *has_waited = true;
        }
        let (most, start) =
            *timeout.get_or_insert_with(|| (kernel::timeout(fd, libc::SO_RCVTIMEO), kernel::now()));
        // The rest of the whole call's time in milliseconds, rounded up.
        let passed = if most < 0 { 0 } else { (kernel::now() - start - 1).max(0) };
        let left = c_int::try_from((i64::from(most) - passed).max(-1)).unwrap_or(most);
        if most >= 0 && left < 0 {
            return if got > 0 { Ok(got) } else { Err(Errno(libc::EAGAIN)) };
        }
        match wait(slot, left) {
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
    let mapping = slot.mapping();
    let incoming = mapping.incoming;
    slot.bytes_spin.wait(mapping.outgoing, incoming, &|| incoming.has_updates())
}

/// Until there may be something: a point where the thread can be cancelled. Returns whether the
/// kernel has something to say.
fn wait(slot: &Slot, most: c_int) -> Result<bool, Errno> {
    // If another thread closes it from here on, there is a copy: this one waits (`Slot::keep`).
    let Some(fd) = slot.any_descriptor() else { return Err(Errno(libc::EBADF)) };
    let mut places =
        [fd, slot.own_eventfd()].map(|fd| pollfd { fd, events: libc::POLLIN, revents: 0 });
    if slot.mapping().outgoing.backlog().is_some() {
        places[0].events |= libc::POLLOUT;
    }
    if eventfds::begin_sleep(slot) {
        eventfds::end_sleep(slot);
        return Ok(false);
    }
    let errno = real::errno();
    // SAFETY: two places.
    let ready = unsafe { real::poll(places.as_mut_ptr(), 2, most) };
    eventfds::end_sleep(slot);
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

fn attempt(
    slot: &Slot,
    into: &Buffers,
    skipped: usize,
    flags: c_int,
    asks_kernel: bool,
    place: &mut ReadPosition,
) -> ReceiveAttempt {
    let attempt = receiver_lock::while_receiving(slot, || match slot.any_descriptor() {
        None => ReceiveAttempt::Failed(Errno(libc::EBADF)),
        Some(fd) => match locked(fd, slot, into, skipped, flags, asks_kernel, place) {
            Ok(attempt) => attempt,
            Err(Corrupt) => {
                downgrade::reset(fd);
                ReceiveAttempt::Failed(Errno(libc::ECONNRESET))
            }
        },
    });
    attempt.unwrap_or(ReceiveAttempt::Nothing)
}

fn locked(
    fd: c_int,
    slot: &Slot,
    into: &Buffers,
    skipped: usize,
    flags: c_int,
    asks_kernel: bool,
    place: &mut ReadPosition,
) -> Result<ReceiveAttempt, Corrupt> {
    let incoming = slot.mapping().incoming;
    loop {
        let capacity = incoming.capacity();
        let source = incoming.source(capacity)?;
        if place.is_passed(incoming) {
            return Ok(ReceiveAttempt::Passed);
        }
        match source {
            Source::Ring { from, length } => {
                let room = (into.length() - skipped) as u64;
                let ring = slot.ring(DirectionIndex::Incoming, capacity).ok_or(Corrupt)?;
                let ring = ring_iovecs(ring, capacity, from, length.min(room));
                let seen = from.wrapping_add(length);
                if let Some(attempt) =
                    from_ring(slot, into, skipped, flags, (from, seen), &ring, place)
                {
                    return Ok(attempt);
                }
            }
            Source::Empty if !asks_kernel => {
                slot.received.flush();
                return Ok(ReceiveAttempt::Empty);
            }
            Source::Empty => {
                if let Some(attempt) = at_the_end(fd, slot)? {
                    return Ok(attempt);
                }
            }
            Source::Tcp(_) => {
                if let Some(attempt) = from_tcp(fd, slot, into, skipped, flags, place)? {
                    return Ok(attempt);
                }
            }
        }
    }
}

/// Reads bytes of the ring, or the first of them; `None` if a signal handler has read them meanwhile.
fn from_ring(
    slot: &Slot,
    into: &Buffers,
    skipped: usize,
    flags: c_int,
    (from, seen): (u64, u64),
    ring: &[iovec; 2],
    place: &mut ReadPosition,
) -> Option<ReceiveAttempt> {
    let incoming = slot.mapping().incoming;
    let before = incoming.position();
    let length = ring[0].iov_len + ring[1].iov_len;
    let got = if flags & libc::MSG_TRUNC != 0 {
        Ok(length)
    } else {
        buffers::write(ring, &into.part(skipped, length))
    };
    let got = match got {
        Ok(got) => got,
        Err(error) => return Some(ReceiveAttempt::Failed(error)),
    };
    if flags & libc::MSG_PEEK == 0 {
        if !incoming.consume(from, got as u64) {
            return None;
        }
        place.position = before.wrapping_add(got as u64);
        slot.received.add(got as u64);
        wake_sender(incoming);
        eventfds::after_read(slot, seen);
    } else if incoming.tail() != from {
        // The sender may have written others in their place.
        return None;
    }
    Some(ReceiveAttempt::Got(got))
}

/// The sender sleeps until at least half of the ring is free.
fn wake_sender(incoming: &Direction) {
    let full = incoming.full_futex();
    if full.load(Relaxed) != 0
        && incoming.unread() <= incoming.capacity() / 2
        && full.swap(0, Relaxed) != 0
    {
        kernel::futex_wake(full);
    }
}

/// What the kernel says while the ring is empty; `None` if it is not any more.
fn at_the_end(fd: c_int, slot: &Slot) -> Result<Option<ReceiveAttempt>, Corrupt> {
    let incoming = slot.mapping().incoming;
    let capacity = incoming.capacity();
    let followed = incoming.followed();
    let seen = kernel::peek(fd);
    if let Err(Errno(error)) = seen
        && error != libc::EAGAIN
    {
        // The kernel reports it once; bytes of the ring come before it.
        slot.error.store(error, Relaxed);
    }
    // A signal handler may have read what was seen, and followed the stream to the ring again.
    if !matches!(incoming.source(capacity)?, Source::Empty) || incoming.followed() != followed {
        return Ok(None);
    }
    match seen {
        Err(Errno(libc::EAGAIN)) => {
            Ok(eventfds::is_settled(slot)?.then_some(ReceiveAttempt::Nothing))
        }
        Ok(0) => Ok(Some(end(slot))),
        // Bytes of TCP's that belong nowhere: a system call that was not seen.
        Ok(_) => Err(Corrupt),
        Err(error) => {
            slot.error.store(0, Relaxed);
            Ok(Some(ReceiveAttempt::Failed(error)))
        }
    }
}

/// Bytes that can be read (FIONREAD): of TCP and of the ring, if the stream changes between them.
pub fn waiting(fd: c_int, slot: &Slot) -> Result<u64, Errno> {
    let incoming = slot.mapping().incoming;
    let look = || {
        let capacity = incoming.capacity();
        let source = incoming.source(capacity);
        let changes = incoming.changes_since(incoming.followed());
        let cut = undelivered::behind_tcp(fd, slot).map_or(0, |cut| cut.length);
        (source, changes, incoming.unread().min(capacity), cut)
    };
    let Some((source, changes, in_ring, cut)) = receiver_lock::while_receiving(slot, look) else {
        return Ok(0);
    };
    match source {
        Ok(Source::Ring { length, .. }) if changes == 0 => Ok(length),
        Ok(Source::Ring { .. } | Source::Tcp(_)) => Ok(kernel::waiting(fd)? + in_ring + cut),
        _ => Ok(0),
    }
}
