// SPDX-License-Identifier: Apache-2.0
//! A seccomp filter for the program: io_uring moves bytes of a connection without a call that the
//! library sees, so the kernel refuses it, and programs use epoll.

use libc::{c_long, sock_filter, sock_fprog};
use std::io;

/// x86-64 has this bit in the numbers of x32 (`__X32_SYSCALL_BIT`).
const X32: u32 = 1 << 30;
/// The same on all architectures.
const REFUSED: [c_long; 3] =
    [libc::SYS_io_uring_setup, libc::SYS_io_uring_enter, libc::SYS_io_uring_register];

const fn step(code: u32, value: u32) -> sock_filter {
    sock_filter { code: code as u16, jt: 0, jf: 0, k: value }
}

/// Goes on behind the next step unless the number is this one.
const fn unless(number: c_long) -> sock_filter {
    let code = libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K;
    sock_filter { jf: 1, ..step(code, number as u32) }
}

/// ENOSYS, as by a kernel without io_uring.
const REFUSE: sock_filter =
    step(libc::BPF_RET | libc::BPF_K, libc::SECCOMP_RET_ERRNO | libc::ENOSYS as u32);

static FILTER: [sock_filter; 9] = [
    // The number of the call is the first field of seccomp_data.
    step(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0),
    step(libc::BPF_ALU | libc::BPF_AND | libc::BPF_K, !X32),
    unless(REFUSED[0]),
    REFUSE,
    unless(REFUSED[1]),
    REFUSE,
    unless(REFUSED[2]),
    REFUSE,
    step(libc::BPF_RET | libc::BPF_K, libc::SECCOMP_RET_ALLOW),
];

/// Installs the filter, and gives up rights that set-user-ID programs would add: the kernel asks that
/// of users without rights. Between fork and exec: makes system calls only.
pub fn install() -> io::Result<()> {
    let filter = FILTER.as_ptr().cast_mut();
    let program = sock_fprog { len: FILTER.len() as u16, filter };
    // SAFETY: the kernel reads the filter.
    let done = unsafe {
        libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0
            && libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const program) == 0
    };
    if done { Ok(()) } else { Err(io::Error::last_os_error()) }
}
