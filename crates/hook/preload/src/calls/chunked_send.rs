// SPDX-License-Identifier: Apache-2.0
//! Large calls on a stream that does not block. The kernel takes as many bytes as it has room for,
//! and the program calls again with the rest. If all of them were searched ahead of each call, the
//! time would grow with the square of their number. So they are searched and sent in parts, until
//! the kernel takes less than a part.

use crate::memory::kernel_copy;
use crate::record::hook::{DESCRIPTORS, Hook};
use core::ffi::c_int;
use core::mem::MaybeUninit;
use libc::{iovec, size_t, ssize_t};
use tare_hook_segment::Direction;
use tare_interpose::real;
use tare_shm::syscall;

/// Bytes of a part.
const PART: usize = 64 << 10;

/// Buffers that one part has at most.
const TOGETHER: usize = 8;

/// Bytes that the kernel takes in one call at most (write(2)).
const MOST: usize = 0x7fff_f000;

/// With other flags, a call is more than its bytes.
const HARMLESS: c_int = libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL | libc::MSG_MORE;

/// Protocols without boundaries between messages: those of Unix sockets, TCP, MPTCP.
const OF_BYTES: [c_int; 4] = [0, libc::AF_UNIX, libc::IPPROTO_TCP, libc::IPPROTO_MPTCP];

/// Whether a rule may block what goes out.
#[inline(always)]
pub fn may_block() -> bool {
    let view = || Hook::get()?.rules();
    view().is_some_and(|view| view.rules.blocks(Direction::Out))
}

/// Whether a call with these flags can be made in parts, which no program can tell from one call.
#[cold]
fn may_be_parted(fd: c_int, flags: c_int) -> bool {
    let is_nonblocking = || {
        let status = syscall::fcntl(fd, libc::F_GETFL, 0);
        status.is_ok_and(|status| status as c_int & libc::O_NONBLOCK != 0)
    };
    flags & !HARMLESS == 0
        && DESCRIPTORS.look_up(fd).kind().is_stream()
        && (flags & libc::MSG_DONTWAIT != 0 || is_nonblocking())
        && tare_interpose::socket_option(fd, libc::SO_PROTOCOL)
            .is_ok_and(|protocol| OF_BYTES.contains(&protocol))
}

/// Makes `call` for a place and a length in `length` bytes, once or in parts.
#[inline(always)]
pub fn of_buffer(
    fd: c_int,
    length: size_t,
    flags: c_int,
    call: impl Fn(usize, size_t) -> ssize_t,
) -> ssize_t {
    let is_large = length > PART && isize::try_from(length).is_ok();
    if !is_large || !may_block() || !may_be_parted(fd, flags) {
        return call(0, length);
    }
    let length = length.min(MOST);
    let mut sent = 0;
    until_short(fd, || {
        let part = PART.min(length - sent);
        let result = call(sent, part);
        sent += result.max(0) as usize;
        (result, result == part as ssize_t && sent < length)
    })
}

/// Makes `call` for an array of buffers: once with the program's own, or in parts. It is told
/// whether it is the first call.
#[inline(always)]
pub fn of_array(
    fd: c_int,
    first: *const iovec,
    count: usize,
    flags: c_int,
    call: impl Fn(*const iovec, usize, bool) -> ssize_t,
) -> ssize_t {
    if !may_block() || !is_large(first, count) || !may_be_parted(fd, flags) {
        return call(first, count, true);
    }
    let mut rest = Rest { first, count, before: 0 };
    let mut sent = 0;
    until_short(fd, || {
        let mut room = [const { MaybeUninit::uninit() }; TOGETHER];
        let Some(part) = rest.part(&mut room, MOST - sent) else {
            // Only its first part may fail.
            return (if sent == 0 { call(first, count, true) } else { 0 }, false);
        };
        let result = call(part.as_ptr(), part.len(), sent == 0);
        sent += result.max(0) as usize;
        let length = part.iter().map(|buffer| buffer.iov_len).sum::<usize>();
        let is_whole = result == length as ssize_t;
        (result, is_whole && rest.skip(part, length) && sent < MOST)
    })
}

/// Whether the buffers have more than a part together, and are such as the kernel takes.
#[cold]
fn is_large(first: *const iovec, count: usize) -> bool {
    let mut sum = 0usize;
    if count > libc::UIO_MAXIOV as usize {
        return false;
    }
    for place in (0..count).step_by(TOGETHER) {
        let mut room = [const { MaybeUninit::<iovec>::uninit() }; TOGETHER];
        let room = &mut room[..TOGETHER.min(count - place)];
        if kernel_copy::copy(first.wrapping_add(place), room).is_err() {
            return false;
        }
        // SAFETY: just copied.
        for buffer in unsafe { room.assume_init_ref() } {
            match sum.checked_add(buffer.iov_len).filter(|sum| isize::try_from(*sum).is_ok()) {
                Some(more) => sum = more,
                None => return false,
            }
        }
    }
    sum > PART
}

/// What of an array of buffers has not been sent.
struct Rest {
    first: *const iovec,
    count: usize,
    /// Bytes of the first buffer that have been sent.
    before: usize,
}

impl Rest {
    /// The next buffers, with a part or `most` bytes together at most.
    fn part<'room>(
        &self,
        room: &'room mut [MaybeUninit<iovec>; TOGETHER],
        most: usize,
    ) -> Option<&'room mut [iovec]> {
        let count = TOGETHER.min(self.count);
        kernel_copy::copy(self.first, &mut room[..count]).ok()?;
        // SAFETY: just copied.
        let buffers = unsafe { room[..count].assume_init_mut() };
        let [first, ..] = buffers else { return None };
        first.iov_base = first.iov_base.wrapping_byte_add(self.before);
        first.iov_len = first.iov_len.checked_sub(self.before)?;
        let mut left = PART.min(most);
        let mut used = 0;
        for buffer in buffers.iter_mut() {
            if left == 0 {
                break;
            }
            buffer.iov_len = buffer.iov_len.min(left);
            left -= buffer.iov_len;
            used += 1;
        }
        Some(&mut buffers[..used])
    }

    /// The part has been sent; whether anything is left.
    fn skip(&mut self, part: &[iovec], length: usize) -> bool {
        let Some((last, others)) = part.split_last() else { return false };
        let mut whole = [MaybeUninit::<iovec>::uninit()];
        if kernel_copy::copy(self.first.wrapping_add(others.len()), &mut whole).is_err() {
            return false;
        }
        // SAFETY: just copied.
        let whole = unsafe { whole[0].assume_init_ref() }.iov_len;
        let before = if others.is_empty() { self.before } else { 0 } + last.iov_len;
        let (done, before) = if before < whole { (others.len(), before) } else { (part.len(), 0) };
        self.first = self.first.wrapping_add(done);
        self.count -= done;
        self.before = before;
        self.count > 0 && (length > 0 || done > 0)
    }
}

/// Makes one call after the other as long as they say that there is more: the number of bytes of
/// all. An error is the program's only if it is the first call's: the others are not known to it.
fn until_short(fd: c_int, mut call: impl FnMut() -> (ssize_t, bool)) -> ssize_t {
    let errno = real::errno();
    let mut sent = 0;
    loop {
        let (result, is_more) = call();
        if result < 0 && sent == 0 {
            return result;
        }
        sent += result.max(0);
        // A pending error is for the program's next call.
        if !is_more || has_failed(fd) {
            real::set_errno(errno);
            return sent;
        }
    }
}

/// Whether the next call on the socket fails, or would be the first to say what has happened.
fn has_failed(fd: c_int) -> bool {
    let mut socket = libc::pollfd { fd, events: 0, revents: 0 };
    let now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    let arguments = [(&raw mut socket).addr(), 1, (&raw const now).addr(), 0, 0, 0];
    // SAFETY: the kernel reads the time, and reads and writes one struct.
    let _ = unsafe { syscall::call(libc::SYS_ppoll, arguments) };
    socket.revents != 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_an_array_are_all_of_its_bytes_in_order() {
        for (count, length) in [(1, 200_000), (20, 7_000), (3, 65_536), (9, 0), (30, 100)] {
            let bytes: Vec<u8> = (0..count * length).map(|number| (number / 7) as u8).collect();
            let buffers: Vec<iovec> = (0..count)
                .map(|number| iovec {
                    iov_base: bytes[number * length..].as_ptr().cast_mut().cast(),
                    iov_len: length,
                })
                .collect();
            let mut rest = Rest { first: buffers.as_ptr(), count, before: 0 };
            let mut joined = Vec::<u8>::new();
            loop {
                let mut room = [const { MaybeUninit::uninit() }; TOGETHER];
                let part = rest.part(&mut room, usize::MAX).unwrap();
                let sum = part.iter().map(|buffer| buffer.iov_len).sum::<usize>();
                assert!(sum <= PART);
                for buffer in &*part {
                    // SAFETY: inside of `bytes`.
                    joined.extend(unsafe {
                        core::slice::from_raw_parts(buffer.iov_base.cast::<u8>(), buffer.iov_len)
                    });
                }
                if !rest.skip(part, sum) {
                    break;
                }
            }
            assert_eq!(joined, bytes);
        }
    }
}
