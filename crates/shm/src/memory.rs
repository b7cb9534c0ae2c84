// SPDX-License-Identifier: Apache-2.0
//! Memory of this process alone.

use crate::syscall::{Errno, call};
use core::ptr;

/// Since Linux 4.14.
const MADV_WIPEONFORK: usize = 18;

/// Maps `length` bytes, all 0, where the kernel likes.
pub fn map_private(length: usize) -> Result<*mut u8, Errno> {
    let protection = (libc::PROT_READ | libc::PROT_WRITE) as usize;
    let flags = (libc::MAP_PRIVATE | libc::MAP_ANONYMOUS) as usize;
    // SAFETY: a new mapping at an address of the kernel's choice disturbs no other.
    let address = unsafe { call(libc::SYS_mmap, [0, length, protection, flags, usize::MAX, 0]) }?;
    Ok(ptr::with_exposed_provenance_mut(address))
}

/// As `map_private`; in a child process, however it was forked, the bytes are 0 again.
pub fn map_wiped_on_fork(length: usize) -> Result<*mut u8, Errno> {
    let base = map_private(length)?;
    let arguments = [base.addr(), length, MADV_WIPEONFORK, 0, 0, 0];
    // SAFETY: the advice is for the new mapping alone.
    match unsafe { call(libc::SYS_madvise, arguments) } {
        Ok(_) => Ok(base),
        Err(error) => {
            // SAFETY: the mapping has not been given out.
            unsafe { unmap(base, length) };
            Err(error)
        }
    }
}

/// Takes a mapping away.
///
/// # Safety
/// `base` and `length` are those of a mapping that nothing uses any more.
pub unsafe fn unmap(base: *mut u8, length: usize) {
    // SAFETY: unused, as the caller promises.
    let _ = unsafe { call(libc::SYS_munmap, [base.addr(), length, 0, 0, 0, 0]) };
}

#[cfg(all(test, not(miri)))]
mod tests {
    use super::*;

    /// What a child of fork finds where its parent wrote 7.
    fn in_child(base: *mut u8) -> i32 {
        // SAFETY: the test's own mapping; the child makes one system call.
        unsafe {
            base.write(7);
            let child = libc::fork();
            if child == 0 {
                libc::_exit(base.read().into());
            }
            let mut status = -1;
            assert_eq!(libc::waitpid(child, &raw mut status, 0), child);
            libc::WEXITSTATUS(status)
        }
    }

    #[test]
    fn child_finds_zeros_only_where_memory_is_wiped() {
        let [kept, wiped] = [map_private(4096), map_wiped_on_fork(4096)].map(Result::unwrap);
        assert_eq!([kept, wiped].map(in_child), [7, 0]);
        for base in [kept, wiped] {
            // SAFETY: used no more.
            unsafe { unmap(base, 4096) };
        }
    }
}
