// SPDX-License-Identifier: Apache-2.0
//! Receiving on a linked connection.

use crate::buffers::{self, Buffers};
use crate::slots::{Slot, pieces};
use crate::{kernel, lock, send, state};
use core::ffi::c_int;
use core::sync::atomic::Ordering::Relaxed;
use libc::pollfd;
use tare_interpose::real;
use tare_link_segment::{Corrupt, Counter, Source};
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
    /// Nothing yet.
    Nothing,
    /// The end of the stream.
    End,
    Failed(Errno),
}

/// As recvmsg does.
pub fn receive(fd: c_int, slot: &Slot, into: Buffers, flags: c_int) -> Result<usize, Errno> {
    let wanted = into.length();
    let waits_for_all = flags & libc::MSG_WAITALL != 0 && flags & libc::MSG_PEEK == 0;
    let mut got = 0;
    let mut timeout = None;
    loop {
        send::serve(fd, slot);
        match step(fd, slot, &into.skip(got), flags) {
            Step::Got(more) => {
                got += more;
                if got >= wanted || !waits_for_all {
                    return Ok(got);
                }
                continue;
            }
            Step::End => return Ok(got),
            Step::Failed(_) if got > 0 => return Ok(got),
            Step::Failed(error) => return Err(error),
            Step::Nothing => {}
        }
        if flags & libc::MSG_DONTWAIT != 0 || kernel::is_nonblocking(fd) {
            return if got > 0 { Ok(got) } else { Err(Errno(libc::EAGAIN)) };
        }
        let most = *timeout.get_or_insert_with(|| kernel::timeout(fd, libc::SO_RCVTIMEO));
        match wait(fd, slot, most) {
            Err(_) if got > 0 => return Ok(got),
            Err(error) => return Err(error),
            Ok(()) => {}
        }
    }
}

/// A call without room waits for bytes, as the kernel's does, and leaves them.
pub fn await_any(fd: c_int, slot: &Slot, flags: c_int) -> Result<usize, Errno> {
    let mut byte = 0u8;
    let into = Buffers::one((&raw mut byte).cast(), 1);
    receive(fd, slot, into, flags & !libc::MSG_TRUNC | libc::MSG_PEEK).map(|_| 0)
}

/// Until there may be something: a point where the thread can be cancelled.
fn wait(fd: c_int, slot: &Slot, most: c_int) -> Result<(), Errno> {
    let mut places =
        [fd, slot.own_bell()].map(|fd| pollfd { fd, events: libc::POLLIN, revents: 0 });
    if slot.backlog.load(Relaxed) > 0 {
        places[0].events |= libc::POLLOUT;
    }
    let errno = real::errno();
    // SAFETY: two places.
    let ready = unsafe { real::poll(places.as_mut_ptr(), 2, most) };
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

fn step(fd: c_int, slot: &Slot, into: &Buffers, flags: c_int) -> Step {
    let incoming = slot.parts().incoming;
    let held = lock::take(incoming.receiver_lock());
    let step = locked(fd, slot, into, flags);
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

fn locked(fd: c_int, slot: &Slot, into: &Buffers, flags: c_int) -> Result<Step, Corrupt> {
    let incoming = slot.parts().incoming;
    loop {
        let capacity = incoming.capacity();
        incoming.begin_read();
        let source = incoming.source(capacity);
        if let Ok(Source::Tcp(most)) = source {
            let most = usize::try_from(most).unwrap_or(usize::MAX);
            let kept = flags & (libc::MSG_PEEK | libc::MSG_TRUNC);
            let got = kernel::receive(fd, &into.first(into.length().min(most)), kept);
            let is_read = flags & libc::MSG_PEEK == 0;
            incoming.end_read(if is_read { got.unwrap_or(0) as u64 } else { 0 });
            match got {
                Ok(0) if into.length() > 0 => {
                    // Bytes of the ring may have been published before the end.
                    if !matches!(incoming.source(capacity)?, Source::Tcp(_)) {
                        continue;
                    }
                    return Ok(end(slot));
                }
                Ok(got) => {
                    if is_read {
                        state::count(Counter::TcpReceived, got as u64);
                    }
                    return Ok(Step::Got(got));
                }
                Err(Errno(libc::EAGAIN)) => {
                    if !matches!(incoming.source(capacity)?, Source::Tcp(_)) || !settle(slot)? {
                        continue;
                    }
                    return Ok(Step::Nothing);
                }
                Err(error) => {
                    if matches!(incoming.source(capacity)?, Source::Ring { .. }) {
                        slot.error.store(error.0, Relaxed);
                        continue;
                    }
                    return Ok(Step::Failed(error));
                }
            }
        }
        incoming.end_read(0);
        match source? {
            Source::Ring { from, length } => {
                let length = length.min(into.length() as u64);
                let from_ring = pieces(slot.parts().incoming_ring, capacity, from, length);
                let got = if flags & libc::MSG_TRUNC != 0 {
                    Ok(length as usize)
                } else {
                    buffers::write(&from_ring, into)
                };
                let got = match got {
                    Ok(got) => got,
                    Err(error) => return Ok(Step::Failed(error)),
                };
                if flags & libc::MSG_PEEK == 0 {
                    if !incoming.consume(from, got as u64) {
                        continue;
                    }
                    state::count(Counter::RingReceived, got as u64);
                    state::count(Counter::RingReceives, 1);
                    settle(slot)?;
                }
                return Ok(Step::Got(got));
            }
            Source::Empty => {
                let seen = kernel::peek(fd);
                if let Err(Errno(error)) = seen
                    && error != libc::EAGAIN
                {
                    // The kernel reports it once; bytes of the ring come before it.
                    slot.error.store(error, Relaxed);
                }
                if !matches!(incoming.source(capacity)?, Source::Empty) {
                    continue;
                }
                match seen {
                    Err(Errno(libc::EAGAIN)) => {
                        if settle(slot)? {
                            return Ok(Step::Nothing);
                        }
                    }
                    Ok(0) => {
                        return Ok(end(slot));
                    }
                    // Bytes of TCP's that belong nowhere: a system call that was not seen.
                    Ok(_) => return Err(Corrupt),
                    Err(error) => {
                        slot.error.store(0, Relaxed);
                        return Ok(Step::Failed(error));
                    }
                }
            }
            Source::Tcp(_) => {}
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

/// Makes the bell fit the ring, so that sets report what there is: rung while there are bytes, else
/// armed and its eventfd empty. Whether the ring is empty, or TCP's turn it is.
fn settle(slot: &Slot) -> Result<bool, Corrupt> {
    let incoming = slot.parts().incoming;
    let bell = incoming.bell();
    loop {
        let capacity = incoming.capacity();
        if let Source::Ring { .. } = incoming.source(capacity)? {
            if !bell.is_rung() {
                bell.arm();
                if bell.ring() {
                    kernel::add(slot.own_bell());
                }
            }
            return Ok(false);
        }
        if bell.is_rung() {
            // Who rings adds to it at once.
            let mut times = 0;
            while !kernel::clear(slot.own_bell()) && times < 1000 {
                times += 1;
                kernel::yield_now();
            }
        }
        bell.arm();
        if !matches!(incoming.source(capacity)?, Source::Ring { .. }) {
            return Ok(true);
        }
    }
}

/// After a set got the eventfd.
pub fn settle_for_sets(slot: &Slot) {
    let incoming = slot.parts().incoming;
    let held = lock::take(incoming.receiver_lock());
    let _ = settle(slot);
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

/// Bytes that can be read (FIONREAD).
pub fn waiting(fd: c_int, slot: &Slot) -> Result<u64, Errno> {
    let incoming = slot.parts().incoming;
    let held = lock::take(incoming.receiver_lock());
    let source = incoming.source(incoming.capacity());
    lock::release(incoming.receiver_lock(), held);
    match source {
        Ok(Source::Ring { length, .. }) => Ok(length),
        Ok(Source::Tcp(most)) => Ok(kernel::waiting(fd)?.min(most)),
        _ => Ok(0),
    }
}
