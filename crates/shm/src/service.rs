// SPDX-License-Identifier: Apache-2.0
//! Who serves a segment: the one process that holds a lock on its file. The lock is the
//! process's, not the descriptor's, which programs inherit, and the kernel releases it,
//! however the process ends. With any descriptor of the file that the process closes, it goes.

use crate::syscall::{self, Errno};
use core::ffi::{c_int, c_short};
use core::mem::MaybeUninit;

/// Makes this process the one that serves a segment, or names the one that does: 0 where it is
/// in another PID namespace.
pub fn serve(fd: c_int) -> Result<Option<u32>, Errno> {
    loop {
        let mut lock = whole_file();
        match syscall::fcntl(fd, libc::F_SETLK, (&raw mut lock).addr()) {
            Ok(_) => return Ok(None),
            Err(Errno(libc::EAGAIN | libc::EACCES)) => {}
            Err(error) => return Err(error),
        }
        // Else it has ended between the two calls.
        if let Some(other) = server(fd)? {
            return Ok(Some(other));
        }
    }
}

/// The other process that serves a segment, if there is one.
pub fn server(fd: c_int) -> Result<Option<u32>, Errno> {
    let mut lock = whole_file();
    syscall::fcntl(fd, libc::F_GETLK, (&raw mut lock).addr())?;
    let is_free = lock.l_type == libc::F_UNLCK as c_short;
    Ok((!is_free).then(|| u32::try_from(lock.l_pid).unwrap_or(0)))
}

fn whole_file() -> libc::flock {
    // SAFETY: a flock of zeros is a valid one: of the whole file.
    let mut lock: libc::flock = unsafe { MaybeUninit::zeroed().assume_init() };
    (lock.l_type, lock.l_whence) = (libc::F_WRLCK as c_short, libc::SEEK_SET as c_short);
    lock
}
