// SPDX-License-Identifier: Apache-2.0
use core::ffi::c_void;
use libc::iovec;
use tare_shm::{Errno, syscall};

/// Buffers of the program, up to a number of bytes.
#[derive(Clone, Copy)]
pub struct Vectors<'a> {
    vectors: &'a [iovec],
    left: usize,
}

/// Pages are no smaller on either architecture.
const PAGE: usize = 4096;

impl<'a> Vectors<'a> {
    /// The first `length` bytes of the buffers, or all where they have fewer.
    ///
    /// # Safety
    /// The buffers must be readable that far, and not written meanwhile.
    pub unsafe fn new(vectors: &'a [iovec], length: usize) -> Self {
        Self { vectors, left: length }
    }

    /// The bytes that there are.
    pub fn length(&self) -> usize {
        let each = self.vectors.iter().map(|vector| vector.iov_len);
        self.left.min(each.fold(0, usize::saturating_add))
    }
}

impl<'a> Iterator for Vectors<'a> {
    type Item = &'a [u8];

    #[inline]
    fn next(&mut self) -> Option<&'a [u8]> {
        while let Some((first, rest)) = self.vectors.split_first()
            && self.left > 0
        {
            self.vectors = rest;
            let length = first.iov_len.min(self.left);
            self.left -= length;
            if length > 0 {
                // SAFETY: promised to `new`.
                return Some(unsafe {
                    core::slice::from_raw_parts(first.iov_base.cast_const().cast(), length)
                });
            }
        }
        None
    }
}

/// The array behind a `readv` or a `msghdr`; empty for null.
///
/// # Safety
/// As [`core::slice::from_raw_parts`], where it is not null.
pub unsafe fn array<'a, T>(first: *const T, count: usize) -> &'a [T] {
    if first.is_null() {
        return &[];
    }
    // SAFETY: promised by the caller.
    unsafe { core::slice::from_raw_parts(first, count) }
}

pub fn one(buffer: *const c_void, length: usize) -> [iovec; 1] {
    [iovec { iov_base: buffer.cast_mut(), iov_len: length }]
}

/// Whether the program may read `length` bytes at `first`. A call that will fail with EFAULT,
/// or stop short at the end of what is mapped, must do that under the hook, too.
pub fn is_readable<T>(first: *const T, length: usize) -> bool {
    const WORD: usize = 8;
    let first = first.addr();
    let Some(end) = first.checked_add(length) else { return false };
    let mut at = first & !(WORD - 1);
    while at < end {
        if !is_readable_word(at) {
            return false;
        }
        at = (at & !(PAGE - 1)) + PAGE;
    }
    true
}

/// Asks the kernel to read an aligned word: with an impossible first argument,
/// rt_sigprocmask does nothing else. Null it does not read, and no program can map.
fn is_readable_word(address: usize) -> bool {
    if address == 0 {
        return false;
    }
    let impossible = usize::MAX;
    // SAFETY: nothing is changed.
    let result =
        unsafe { syscall::call(libc::SYS_rt_sigprocmask, [impossible, address, 0, 8, 0, 0]) };
    result != Err(Errno(libc::EFAULT))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn joined(vectors: &[iovec], length: usize) -> Vec<u8> {
        // SAFETY: the tests' own buffers.
        let vectors = unsafe { Vectors::new(vectors, length) };
        let all: Vec<u8> = vectors.flatten().copied().collect();
        assert_eq!(all.len(), vectors.length());
        all
    }

    #[test]
    fn only_the_bytes_that_went_by_are_seen() {
        let buffers: [&[u8]; 4] = [b"abc", b"", b"defg", b"hi"];
        let vectors = buffers.map(|buffer| one(buffer.as_ptr().cast(), buffer.len())[0]);
        assert_eq!(joined(&vectors, 0), b"");
        assert_eq!(joined(&vectors, 5), b"abcde");
        assert_eq!(joined(&vectors, 99), b"abcdefghi");
    }

    #[test]
    fn what_may_not_be_read_is_not_readable() {
        let size = 2 * PAGE;
        // SAFETY: a new mapping, of which the second half is locked.
        let base = unsafe {
            let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
            let base = libc::mmap(core::ptr::null_mut(), size, libc::PROT_READ, flags, -1, 0);
            libc::mprotect(base.byte_add(PAGE), PAGE, libc::PROT_NONE);
            base.cast::<u8>()
        };
        assert!(is_readable(base, PAGE));
        assert!(is_readable(base.wrapping_add(PAGE - 1), 1));
        assert!(!is_readable(base.wrapping_add(PAGE - 1), 2));
        assert!(!is_readable(core::ptr::null::<u8>(), 1));
        assert!(!is_readable(base, usize::MAX));
        assert!(is_readable(core::ptr::null::<u8>(), 0));
    }
}
