// SPDX-License-Identifier: Apache-2.0
//! What the kernel says of a program.

use std::os::fd::{FromRawFd, OwnedFd, RawFd};

/// Its words, as it was started.
pub fn command(pid: u32) -> String {
    let command = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    String::from_utf8_lossy(&command).replace('\0', " ").trim_end().to_owned()
}

pub fn host() -> String {
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    host.trim_end().to_owned()
}

/// Whether there is something to read, or the other end is gone.
pub fn is_readable(fd: RawFd) -> bool {
    let mut poll = libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
    // SAFETY: one entry.
    unsafe { libc::poll(&mut poll, 1, 0) > 0 && poll.revents != 0 }
}

/// What rules can mean a process by: its name, that of its program, and its number, as it is
/// known here and as it is known to itself.
pub fn names(pid: u32, own_pid: u32) -> Vec<String> {
    let read = |file| std::fs::read(format!("/proc/{pid}/{file}")).unwrap_or_default();
    let name = String::from_utf8_lossy(&read("comm")).trim_end().to_owned();
    let command = read("cmdline");
    let program = command.split(|byte| *byte == 0).next().unwrap_or_default();
    let program = program.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
    let program = String::from_utf8_lossy(program).into_owned();
    vec![name, program, pid.to_string(), own_pid.to_string()]
}

/// Becomes readable with the end of the process.
pub fn pidfd(pid: u32) -> Option<OwnedFd> {
    // SAFETY: no memory is touched.
    let fd = unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) };
    // SAFETY: a new descriptor, owned by nobody else.
    (fd >= 0).then(|| unsafe { OwnedFd::from_raw_fd(fd as i32) })
}
