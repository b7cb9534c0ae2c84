// SPDX-License-Identifier: Apache-2.0
//! The CPUs on which a task may run: sched_setaffinity(2).

use std::collections::BTreeSet;
use std::io;

/// The CPUs on which a task may run; none where that cannot be read.
pub fn cpus_of(task: libc::pid_t) -> BTreeSet<usize> {
    // SAFETY: all zeroes is the empty set.
    let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    // SAFETY: `set` is valid for its size; where the call fails it stays empty.
    unsafe { libc::sched_getaffinity(task, size_of_val(&set), &mut set) };
    // SAFETY: the number lies within the set.
    let has = |cpu: &usize| unsafe { libc::CPU_ISSET(*cpu, &set) };
    (0..libc::CPU_SETSIZE as usize).filter(has).collect()
}

/// Runs this thread, and those that it starts, on these CPUs only.
pub fn pin(cpus: &[usize]) -> io::Result<()> {
    // SAFETY: all zeroes is the empty set.
    let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    for cpu in cpus.iter().filter(|cpu| **cpu < libc::CPU_SETSIZE as usize) {
        // SAFETY: the number lies within the set.
        unsafe { libc::CPU_SET(*cpu, &mut set) };
    }
    // SAFETY: `set` is valid for its size.
    match unsafe { libc::sched_setaffinity(0, size_of_val(&set), &set) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}
