// SPDX-License-Identifier: Apache-2.0
//! Forbidding system calls holds for the whole process: these are alone in theirs.
#![cfg(not(any(loom, miri)))]

use tare_shm::Errno;
use tare_shm::syscall;

#[test]
fn forbidden_calls_fail_and_do_not_reach_the_kernel() {
    assert_eq!(syscall::getpid(), std::process::id());
    syscall::forbid();
    assert!(syscall::are_forbidden());
    assert_eq!(syscall::fstat(-1).unwrap_err(), Errno(libc::EPERM));
    assert_eq!(std::thread::spawn(syscall::gettid).join().unwrap(), 0);
}
