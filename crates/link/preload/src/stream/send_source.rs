// SPDX-License-Identifier: Apache-2.0
//! What a call sends: the program's buffers, or a part of a file.

use crate::kernel;
use crate::stream::buffers::{self, Buffers};
use core::ffi::c_int;
use libc::iovec;
use tare_shm::syscall::Errno;

pub trait SendSource {
    fn length(&self) -> usize;

    /// Copies what is behind the first `done` bytes, as much as there is room for.
    fn read(&self, done: usize, into: &[iovec; 2]) -> Result<usize, Errno>;
}

impl SendSource for Buffers {
    fn length(&self) -> usize {
        Buffers::length(self)
    }

    fn read(&self, done: usize, into: &[iovec; 2]) -> Result<usize, Errno> {
        buffers::read(&self.part(done, into[0].iov_len + into[1].iov_len), into)
    }
}

/// A part of a file; it may end earlier.
pub struct FilePart {
    fd: c_int,
    start: i64,
    length: usize,
}

impl FilePart {
    /// `None` if the kernel should judge the call.
    pub fn new(fd: c_int, start: i64, length: usize) -> Option<Self> {
        let end = i64::try_from(length).ok().and_then(|length| start.checked_add(length));
        let is_right = length > 0 && start >= 0 && end.is_some() && kernel::is_plain_file(fd);
        is_right.then_some(Self { fd, start, length })
    }

    pub fn place(&self, done: usize) -> i64 {
        self.start.wrapping_add(done as i64)
    }
}

impl SendSource for FilePart {
    fn length(&self) -> usize {
        self.length
    }

    fn read(&self, done: usize, into: &[iovec; 2]) -> Result<usize, Errno> {
        kernel::read_at(self.fd, into, self.place(done))
    }
}
