// SPDX-License-Identifier: Apache-2.0
//! The program's buffers. They are read and written through the kernel, which reports bad addresses
//! (EFAULT) where a plain copy would end the program.

use crate::state;
use core::ffi::c_void;
use core::mem::MaybeUninit;
use core::ops::Deref;
use libc::iovec;
use tare_shm::syscall::{self, Errno, call};

/// Buffers of one call that are carried; a call with more of them goes to the kernel.
pub const MOST: usize = 64;

/// Buffers of the program, whose addresses may be wrong.
#[derive(Clone, Copy)]
pub struct Buffers {
    list: [iovec; MOST],
    count: usize,
}

impl Deref for Buffers {
    type Target = [iovec];

    fn deref(&self) -> &[iovec] {
        &self.list[..self.count]
    }
}

const NONE: iovec = iovec { iov_base: core::ptr::null_mut(), iov_len: 0 };

impl Buffers {
    pub fn one(buffer: *const c_void, length: usize) -> Self {
        let mut list = [NONE; MOST];
        list[0] = iovec { iov_base: buffer.cast_mut(), iov_len: length };
        Self { list, count: 1 }
    }

    /// The program's array of buffers; `None` if the kernel should judge it: it is too long, its
    /// address is wrong, or its lengths are.
    pub fn array(first: *const iovec, count: usize) -> Option<Self> {
        let mut list = [NONE; MOST];
        let places = list.get_mut(..count)?;
        let length = size_of_val(places);
        let to = iovec { iov_base: places.as_mut_ptr().cast(), iov_len: length };
        let from = iovec { iov_base: first.cast_mut().cast(), iov_len: length };
        if count > 0 && copy(libc::SYS_process_vm_readv, &[to], &[from]) != Ok(length) {
            return None;
        }
        let total = list.iter().try_fold(0usize, |sum, buffer| sum.checked_add(buffer.iov_len));
        total.filter(|total| *total <= isize::MAX as usize)?;
        Some(Self { list, count })
    }

    pub fn length(&self) -> usize {
        self.iter().map(|buffer| buffer.iov_len).sum()
    }

    /// Only the first `length` bytes.
    pub fn first(mut self, mut length: usize) -> Self {
        for buffer in &mut self.list[..self.count] {
            buffer.iov_len = buffer.iov_len.min(length);
            length -= buffer.iov_len;
        }
        self
    }

    /// All but the first `length` bytes.
    pub fn skip(mut self, mut length: usize) -> Self {
        for buffer in &mut self.list[..self.count] {
            let some = buffer.iov_len.min(length);
            buffer.iov_base = buffer.iov_base.wrapping_byte_add(some);
            buffer.iov_len -= some;
            length -= some;
        }
        self
    }
}

/// Copies from the program, as far as it can be read.
pub fn read(from: &[iovec], to: &[iovec]) -> Result<usize, Errno> {
    copy(libc::SYS_process_vm_readv, to, from)
}

/// Copies to the program, as far as it can be written.
pub fn write(from: &[iovec], to: &[iovec]) -> Result<usize, Errno> {
    copy(libc::SYS_process_vm_writev, from, to)
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
    read(&[here], &[there]) == Ok(4)
        && write(&[here], &[there]) == Ok(4)
        && unsafe { to.assume_init() } == from
        && syscall::getpid() == state::process_number()
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
        let some = all.first(6).skip(2);
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
