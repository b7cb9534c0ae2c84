// SPDX-License-Identifier: Apache-2.0
//! Where the times of this process's events come from.

use crate::settings;
use core::sync::atomic::Ordering::Relaxed;
use tare_clock::Source;
use tare_log_segment::Process;
use tare_shm::syscall;

/// What the user asked for, or what has to stand in for it on this machine.
pub fn choose() -> Source {
    let mut list = [0; 256];
    settings::clock().or_fallback(listed(&mut list))
}

/// The kernel's list of its clock sources; `None` where it is not to be seen.
fn listed(list: &mut [u8]) -> Option<&[u8]> {
    const LIST: &core::ffi::CStr =
        c"/sys/devices/system/clocksource/clocksource0/available_clocksource";
    let fd = syscall::open(LIST, libc::O_RDONLY | libc::O_CLOEXEC).ok()?;
    let length = syscall::read(fd, list);
    syscall::close(fd);
    list.get(..length.ok()?)
}

pub fn source(process: &Process) -> Source {
    Source::numbered(process.clock.load(Relaxed))
}

pub fn now(process: &Process) -> u64 {
    source(process).now()
}
