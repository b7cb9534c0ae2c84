// SPDX-License-Identifier: Apache-2.0
//! Moving descriptors to high numbers: programs expect low numbers to be free, such as
//! `exec 3>file` in a script.

use crate::syscall;
use core::ffi::c_int;

/// Lowest number to move to; with a lower limit of open files, `ROOM` below that limit.
const HIGH: u64 = 1000;
const ROOM: u64 = 8;

/// Moves a descriptor to a high number, close-on-exec. Returns `fd` itself if no number is free.
pub fn move_up(fd: c_int) -> c_int {
    let lowest = limit().saturating_sub(ROOM).min(HIGH);
    let Ok(moved) = syscall::duplicate(fd, lowest) else { return fd };
    syscall::close(fd);
    moved
}

/// Soft limit of open files.
fn limit() -> u64 {
    syscall::limit(libc::RLIMIT_NOFILE).unwrap_or(HIGH)
}

#[cfg(all(test, not(miri)))]
mod tests {
    use super::*;

    #[test]
    fn moved_descriptor_is_the_same_file() {
        let fd = syscall::open(c"/dev/null", libc::O_RDONLY).unwrap();
        let before = syscall::fstat(fd).unwrap();
        let moved = move_up(fd);
        assert!(moved as u64 >= limit().saturating_sub(ROOM).min(HIGH));
        assert_eq!(syscall::fstat(moved).unwrap().st_ino, before.st_ino);
        assert_eq!(syscall::fcntl(moved, libc::F_GETFD, 0), Ok(libc::FD_CLOEXEC as usize));
        syscall::close(moved);
        assert_eq!(move_up(-1), -1);
    }
}
