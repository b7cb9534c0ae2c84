// SPDX-License-Identifier: Apache-2.0
//! The program's buffers. Those in memory that is known to be accessible are copied; others are read
//! and written through the kernel, which reports bad addresses (EFAULT).

use crate::state;
use crate::stream::accessible_memory::{self, Access};
use core::ffi::c_void;
use core::mem::MaybeUninit;
use core::ops::Deref;
use core::ptr;
use libc::iovec;
use tare_shm::syscall::{self, Errno, call};

/// Buffers of one call that are carried; a call with more of them goes to the kernel.
pub const MOST: usize = 64;

/// Buffers of the program, whose addresses may be wrong.
pub struct Buffers {
    list: [MaybeUninit<iovec>; MOST],
    count: usize,
    length: usize,
}

impl Deref for Buffers {
    type Target = [iovec];

    fn deref(&self) -> &[iovec] {
        // SAFETY: this number of entries was written.
        unsafe { self.list[..self.count].assume_init_ref() }
    }
}

impl Buffers {
    const fn none() -> Self {
        Self { list: [MaybeUninit::uninit(); MOST], count: 0, length: 0 }
    }

    pub fn one(buffer: *const c_void, length: usize) -> Self {
        let mut buffers = Self::none();
        buffers.push(iovec { iov_base: buffer.cast_mut(), iov_len: length });
        buffers
    }

    /// The program's array of buffers; `None` if the kernel should judge it: it is too long, its
    /// address is wrong, or its lengths are.
    pub fn array(first: *const iovec, count: usize) -> Option<Self> {
        let mut buffers = Self::none();
        let places = buffers.list.get_mut(..count)?;
        let length = size_of_val(places);
        let to = iovec { iov_base: places.as_mut_ptr().cast(), iov_len: length };
        let from = iovec { iov_base: first.cast_mut().cast(), iov_len: length };
        if count > 0 && read(&[from], &[to]) != Ok(length) {
            return None;
        }
        buffers.count = count;
        let total = buffers.iter().try_fold(0usize, |sum, vector| sum.checked_add(vector.iov_len));
        buffers.length = total.filter(|total| *total <= isize::MAX as usize)?;
        Some(buffers)
    }

    fn push(&mut self, vector: iovec) {
        self.list[self.count].write(vector);
        self.count += 1;
        self.length += vector.iov_len;
    }

    pub fn length(&self) -> usize {
        self.length
    }

    /// These and others behind them; `None` if they are too many.
    pub fn with(mut self, others: &Self) -> Option<Self> {
        if self.count + others.count > MOST {
            return None;
        }
        others.iter().for_each(|buffer| self.push(*buffer));
        Some(self)
    }

    /// At most `length` bytes behind the first `skipped`.
    pub fn part(&self, mut skipped: usize, mut length: usize) -> Self {
        let mut part = Self::none();
        for buffer in self.iter() {
            let before = skipped.min(buffer.iov_len);
            skipped -= before;
            let some = length.min(buffer.iov_len - before);
            length -= some;
            if some > 0 {
                let base = buffer.iov_base.wrapping_byte_add(before);
                part.push(iovec { iov_base: base, iov_len: some });
            }
        }
        part
    }
}

/// Copies from the program, as far as it can be read.
pub fn read(from: &[iovec], to: &[iovec]) -> Result<usize, Errno> {
    if accessible_memory::allows(from, Access::Read) {
        return Ok(directly(from, to));
    }
    copy(libc::SYS_process_vm_readv, to, from)
}

/// Copies to the program, as far as it can be written.
pub fn write(from: &[iovec], to: &[iovec]) -> Result<usize, Errno> {
    if accessible_memory::allows(to, Access::Write) {
        return Ok(directly(from, to));
    }
    copy(libc::SYS_process_vm_writev, from, to)
}

/// Copies between memory that can be accessed.
fn directly(from: &[iovec], to: &[iovec]) -> usize {
    let (mut done, mut at) = (0, 0);
    let mut places = to.iter();
    let mut place = places.next();
    for source in from {
        let mut taken = 0;
        while let Some(target) = place.filter(|_| taken < source.iov_len) {
            let length = (source.iov_len - taken).min(target.iov_len - at);
            // SAFETY: both are this long. Bytes of a ring may change meanwhile: whatever they
            // are, they are the stream's.
            unsafe {
                let target = target.iov_base.byte_add(at);
                libc::memcpy(target, source.iov_base.byte_add(taken), length);
            }
            (done, taken, at) = (done + length, taken + length, at + length);
            if at == target.iov_len {
                (place, at) = (places.next(), 0);
            }
        }
    }
    done
}

fn copy(number: i64, own: &[iovec], programs: &[iovec]) -> Result<usize, Errno> {
    let pid = state::process_number() as usize;
    let (own_at, at) = (own.as_ptr().addr(), programs.as_ptr().addr());
    // SAFETY: `own` is the library's or a ring's memory; the kernel checks the program's.
    unsafe { call(number, [pid, own_at, own.len(), at, programs.len(), 0]) }
}

/// Whether the kernel copies for the library: a seccomp filter of a container may forbid it.
pub fn can_copy() -> bool {
    let (from, mut to) = ([7u8; 4], MaybeUninit::<[u8; 4]>::zeroed());
    let there = iovec { iov_base: to.as_mut_ptr().cast(), iov_len: 4 };
    let here = iovec { iov_base: from.as_ptr().cast_mut().cast(), iov_len: 4 };
    // SAFETY: zeros are four bytes, and so is what was copied.
    copy(libc::SYS_process_vm_readv, &[there], &[here]) == Ok(4)
        && copy(libc::SYS_process_vm_writev, &[here], &[there]) == Ok(4)
        && unsafe { to.assume_init() } == from
        && syscall::getpid() == state::process_number()
}

/// A copy of what the program points to; `None` if it cannot be read.
pub fn read_value<T: Copy>(from: *const T) -> Option<T> {
    let mut copy = MaybeUninit::<T>::uninit();
    let is_read = read_to(from.expose_provenance(), copy.as_mut_ptr().cast(), size_of::<T>());
    // SAFETY: the kernel has written all of it.
    is_read.then(|| unsafe { copy.assume_init() })
}

/// Copies the bytes at an address of the program; false if they cannot be read.
pub fn read_bytes(from: usize, to: &mut [u8]) -> bool {
    read_to(from, to.as_mut_ptr(), to.len())
}

#[inline(never)]
fn read_to(from: usize, to: *mut u8, length: usize) -> bool {
    let to = iovec { iov_base: to.cast(), iov_len: length };
    let source = iovec { iov_base: ptr::with_exposed_provenance_mut(from), iov_len: length };
    read(&[source], &[to]) == Ok(length)
}

/// Writes a value for the program; false if its address is wrong.
pub fn write_value<T: Copy>(to: *mut T, mut value: T) -> bool {
    let length = size_of::<T>();
    let source = iovec { iov_base: (&raw mut value).cast(), iov_len: length };
    let target = iovec { iov_base: to.cast(), iov_len: length };
    write(&[source], &[target]) == Ok(length)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_are_cut_at_both_ends() {
        let bytes = *b"abcdefgh";
        let array = [0, 3].map(|at| iovec {
            iov_base: bytes[at..].as_ptr().cast_mut().cast(),
            iov_len: 3 + at / 3 * 2,
        });
        let all = Buffers::array(array.as_ptr(), 2).unwrap();
        assert_eq!(all.length(), 8);
        let some = all.part(2, 4);
        let mut out = [0u8; 8];
        let to = iovec { iov_base: out.as_mut_ptr().cast(), iov_len: 8 };
        assert_eq!((read(&some, &[to]), &out[..4]), (Ok(4), &b"cdef"[..]));
    }

    #[test]
    fn bad_addresses_are_errors() {
        assert!(can_copy());
        let mut out = [0u8; 8];
        let to = iovec { iov_base: out.as_mut_ptr().cast(), iov_len: 8 };
        let nowhere = Buffers::one(core::ptr::without_provenance(64), 8);
        assert_eq!(read(&nowhere, &[to]), Err(Errno(libc::EFAULT)));
        assert_eq!(write(&[to], &nowhere), Err(Errno(libc::EFAULT)));
        assert!(Buffers::array(core::ptr::without_provenance(64), 2).is_none());
        assert!(Buffers::array(core::ptr::null(), MOST + 1).is_none());
        assert_eq!(Buffers::array(core::ptr::null(), 0).unwrap().length(), 0);
    }
}
