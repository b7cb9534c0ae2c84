// SPDX-License-Identifier: Apache-2.0
//! Bytes that the program sends, read through the kernel: while they are searched, another thread
//! may unmap them or another process truncate their file, and a look at them would end the program.

use crate::memory::buffers;
use crate::memory::vectors::Bytes;
use crate::thread::Thread;
use core::mem::MaybeUninit;
use core::ops::ControlFlow;
use libc::{c_void, iovec};
use tare_shm::syscall::{self, Errno};

/// Buffers that one call reads from.
pub const TOGETHER: usize = 8;

/// Buffers of the program, up to a number of bytes.
#[derive(Clone, Copy)]
pub struct Copied {
    buffers: Buffers,
    left: usize,
}

#[derive(Clone, Copy)]
enum Buffers {
    One(iovec),
    /// The program's own array.
    Array(*const iovec, usize),
}

impl Copied {
    pub fn one(buffer: *const c_void, length: usize, left: usize) -> Self {
        let vector = iovec { iov_base: buffer.cast_mut(), iov_len: length };
        Self { buffers: Buffers::One(vector), left }
    }

    /// Of more buffers than the kernel takes, none.
    pub fn array(first: *const iovec, count: usize, left: usize) -> Self {
        let count = if count > libc::UIO_MAXIOV as usize { 0 } else { count };
        Self { buffers: Buffers::Array(first, count), left }
    }
}

impl Bytes for Copied {
    /// Ends with the first byte that cannot be read; fails if the kernel reads none for us.
    fn each(
        self,
        most: usize,
        mut each: impl FnMut(&[u8]) -> ControlFlow<()>,
    ) -> Result<usize, Errno> {
        let left = self.left.min(most);
        let wanted = match self.buffers {
            Buffers::One(vector) => vector.iov_len.min(left),
            Buffers::Array(..) => left,
        };
        let mut seen = 0;
        let done = buffers::with(wanted, |buffer| match self.buffers {
            Buffers::One(vector) => read_all(&mut [vector], left, buffer, &mut seen, &mut each),
            Buffers::Array(first, count) => {
                for start in (0..count).step_by(TOGETHER) {
                    let mut some = [const { MaybeUninit::uninit() }; TOGETHER];
                    let some = &mut some[..TOGETHER.min(count - start)];
                    copy(first.wrapping_add(start), some)?;
                    // SAFETY: all of them have just been copied.
                    let some = unsafe { some.assume_init_mut() };
                    read_all(some, left, buffer, &mut seen, &mut each)?;
                }
                Ok(())
            }
        });
        match done {
            Err(error) if seen == 0 && error != Errno(libc::EFAULT) => Err(error),
            _ => Ok(seen),
        }
    }
}

/// Hands over what these buffers have, until `seen` is `left`.
fn read_all(
    buffers: &mut [iovec],
    left: usize,
    room: &mut [MaybeUninit<u8>],
    seen: &mut usize,
    each: &mut impl FnMut(&[u8]) -> ControlFlow<()>,
) -> Result<(), Errno> {
    while *seen < left
        && let Some(first) = buffers.iter().position(|buffer| buffer.iov_len > 0)
    {
        let length = room.len().min(left - *seen);
        let got = read(buffers[first..].iter().copied(), &mut room[..length])?;
        // SAFETY: the kernel has just written them.
        let part = unsafe { room[..got].assume_init_ref() };
        *seen += got;
        if each(part).is_break() || got == 0 {
            break;
        }
        skip(buffers, got);
    }
    Ok(())
}

/// Takes `length` bytes off the front.
fn skip(buffers: &mut [iovec], mut length: usize) {
    for buffer in buffers {
        let some = length.min(buffer.iov_len);
        buffer.iov_base = buffer.iov_base.wrapping_byte_add(some);
        buffer.iov_len -= some;
        length -= some;
    }
}

/// Copies an array of the program's, whole or not at all.
pub fn copy<T>(from: *const T, to: &mut [MaybeUninit<T>]) -> Result<(), Errno> {
    let length = size_of_val(to);
    let source = iovec { iov_base: from.cast_mut().cast(), iov_len: length };
    // SAFETY: the bytes of `to`, which need not be initialized.
    let place = unsafe { core::slice::from_raw_parts_mut(to.as_mut_ptr().cast(), length) };
    match read([source].into_iter(), place)? {
        got if got == length => Ok(()),
        _ => Err(Errno(libc::EFAULT)),
    }
}

/// The program's value, which may not be there.
pub fn value<T: Copy>(from: *const T) -> Option<T> {
    let mut value = MaybeUninit::uninit();
    copy(from, core::slice::from_mut(&mut value)).ok()?;
    // SAFETY: just copied; the types are C's, of which any bytes are values.
    Some(unsafe { value.assume_init() })
}

/// Reads from memory of this process, as far as it can be read and finds room. Of more buffers than
/// `TOGETHER`, the first. Not inlined, so that its array leaves the stack before bytes are searched.
#[inline(never)]
fn read(from: impl Iterator<Item = iovec>, to: &mut [MaybeUninit<u8>]) -> Result<usize, Errno> {
    let (pid, _) = Thread::get().identity();
    let none = iovec { iov_base: core::ptr::null_mut(), iov_len: 0 };
    // The kernel holds all pages of a buffer, up to 4 MiB, for however few bytes.
    let mut sources = [none; TOGETHER];
    let mut count = 0;
    for (place, buffer) in sources.iter_mut().zip(from) {
        *place = iovec { iov_len: buffer.iov_len.min(to.len()), ..buffer };
        count += 1;
    }
    let to = iovec { iov_base: to.as_mut_ptr().cast(), iov_len: to.len() };
    let arguments = [pid as usize, (&raw const to).addr(), 1, sources.as_ptr().addr(), count, 0];
    // SAFETY: the kernel writes into `to` alone, and checks what it reads.
    unsafe { syscall::call(libc::SYS_process_vm_readv, arguments) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::ops::ControlFlow::Continue;
    use core::ptr;

    fn joined(bytes: Copied, most: usize) -> (Result<usize, Errno>, Vec<u8>) {
        let _alone = crate::memory::buffers::tests::alone();
        let mut all = Vec::new();
        let seen = bytes.each(most, |part| {
            all.extend(part);
            Continue(())
        });
        (seen, all)
    }

    #[test]
    fn buffers_of_any_number_and_length_are_joined() {
        for (count, length) in [(1, 0), (1, 7), (1, 100_000), (20, 3), (9, 5000)] {
            let parts: Vec<Vec<u8>> = (0..count).map(|number| vec![number as u8; length]).collect();
            let vectors: Vec<iovec> = parts
                .iter()
                .map(|part| iovec { iov_base: part.as_ptr().cast_mut().cast(), iov_len: length })
                .collect();
            let whole = parts.concat();
            for most in [0, 1, 10, whole.len(), usize::MAX] {
                let expected = &whole[..most.min(whole.len())];
                let array = Copied::array(vectors.as_ptr(), count, usize::MAX);
                assert_eq!(joined(array, most), (Ok(expected.len()), expected.to_vec()));
            }
        }
    }

    #[test]
    fn unreadable_bytes_end_what_is_seen() {
        const PAGE: usize = 4096;
        // SAFETY: a new mapping, of which the second half is locked.
        let base = unsafe {
            let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
            let base = libc::mmap(ptr::null_mut(), 2 * PAGE, libc::PROT_READ, flags, -1, 0);
            libc::mprotect(base.byte_add(PAGE), PAGE, libc::PROT_NONE);
            base
        };
        let end = base.wrapping_byte_add(PAGE - 2);
        assert_eq!(joined(Copied::one(end, 5, 5), 5), (Ok(2), vec![0, 0]));
        assert_eq!(joined(Copied::one(ptr::null(), 5, 5), 5), (Ok(0), vec![]));
        let array = Copied::array(end.cast::<iovec>(), 1, usize::MAX);
        assert_eq!(joined(array, 5), (Ok(0), vec![]));
    }
}
