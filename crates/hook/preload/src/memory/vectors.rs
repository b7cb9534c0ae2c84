// SPDX-License-Identifier: Apache-2.0
use core::ffi::c_void;
use core::ops::ControlFlow;
use libc::iovec;
use tare_shm::Errno;

/// Bytes that a call moves.
pub trait Bytes: Copy {
    /// Hands the first `most` of them to `each`, part by part, until it breaks. Says how many it
    /// handed over; fails if they cannot be looked at.
    fn each(self, most: usize, each: impl FnMut(&[u8]) -> ControlFlow<()>) -> Result<usize, Errno>;
}

/// Buffers of the program, up to a number of bytes.
#[derive(Clone, Copy)]
pub struct Vectors<'a> {
    vectors: &'a [iovec],
    left: usize,
}

impl<'a> Vectors<'a> {
    /// The first `length` bytes of the buffers, or all where they have fewer.
    ///
    /// # Safety
    /// The buffers must be readable that far, and not written meanwhile.
    pub unsafe fn new(vectors: &'a [iovec], length: usize) -> Self {
        Self { vectors, left: length }
    }
}

impl Bytes for Vectors<'_> {
    #[inline]
    fn each(
        mut self,
        most: usize,
        mut each: impl FnMut(&[u8]) -> ControlFlow<()>,
    ) -> Result<usize, Errno> {
        self.left = self.left.min(most);
        let mut seen = 0;
        for part in self {
            seen += part.len();
            if each(part).is_break() {
                break;
            }
        }
        Ok(seen)
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

#[cfg(test)]
mod tests {
    use super::*;

    fn joined(vectors: &[iovec], length: usize) -> Vec<u8> {
        // SAFETY: the tests' own buffers.
        let vectors = unsafe { Vectors::new(vectors, length) };
        let all: Vec<u8> = vectors.flatten().copied().collect();
        assert_eq!(vectors.each(usize::MAX, |_| ControlFlow::Continue(())), Ok(all.len()));
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
}
