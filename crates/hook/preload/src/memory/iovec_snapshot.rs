// SPDX-License-Identifier: Apache-2.0
//! Where the program asks for bytes, as it stands when a call is made. While the call waits, other
//! threads can take the arrays away, and the bytes that come can overwrite them.

use crate::memory::kernel_copy::{self, TOGETHER};
use core::mem::MaybeUninit;
use libc::iovec;
use tare_shm::syscall;

/// The buffers of a `readv` or a `recvmsg`.
#[derive(Clone, Copy)]
pub enum IovecSnapshot {
    Few([iovec; TOGETHER], usize),
    /// The program's own array, which is copied once the bytes are there.
    Many(*const iovec, usize),
    /// The same, which no system call may copy.
    InPlace(*const iovec, usize),
    /// The kernel reads no such array.
    Nothing,
}

impl IovecSnapshot {
    pub fn of(first: *const iovec, count: usize) -> Self {
        if syscall::are_forbidden() {
            return Self::InPlace(first, count);
        }
        if count > TOGETHER {
            return Self::Many(first, count);
        }
        let mut few =
            [MaybeUninit::new(iovec { iov_base: core::ptr::null_mut(), iov_len: 0 }); TOGETHER];
        match kernel_copy::copy(first, &mut few[..count]) {
            // SAFETY: the array was initialized; copies of the program's buffers are buffers.
            Ok(()) => Self::Few(few.map(|vector| unsafe { vector.assume_init() }), count),
            Err(_) => Self::Nothing,
        }
    }
}
