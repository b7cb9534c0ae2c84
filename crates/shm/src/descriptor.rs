// SPDX-License-Identifier: Apache-2.0
//! Descriptors out of the way of programs that count on low numbers, such as `exec 3>file` in a
//! script.

use crate::syscall;
use core::ffi::c_int;

/// Numbers from here on are nobody's, or those just below the limit, where that is lower.
const HIGH: u64 = 1000;
const ROOM: u64 = 8;

/// Moves a descriptor up, where it is close-on-exec; it stays where it is if no number is free.
pub fn move_up(fd: c_int) -> c_int {
    let lowest = limit().saturating_sub(ROOM).min(HIGH) as usize;
    match syscall::fcntl(fd, libc::F_DUPFD_CLOEXEC, lowest) {
        Ok(moved) => {
            syscall::close(fd);
            moved as c_int
        }
        Err(_) => fd,
    }
}

/// The first number that this process may not have.
fn limit() -> u64 {
    syscall::limit(libc::RLIMIT_NOFILE).unwrap_or(HIGH)
}

#[cfg(all(test, not(miri)))]
mod tests {
    use super::*;

    #[test]
    fn a_descriptor_goes_up_and_stays_the_same_file() {
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
