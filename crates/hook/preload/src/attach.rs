// SPDX-License-Identifier: Apache-2.0
use crate::record::hook::Hook;
use core::ffi::c_int;
use tare_clock::counter;
use tare_hook_segment::{Control, Handover, Shared, VARIABLE, VERSION};
use tare_interpose::watch_forks;
use tare_shm::found::StarterSegment;
use tare_shm::{Access, Segment, memory, syscall};

/// Finds the segments and begins to work; where there are none, everything is forwarded.
pub fn attach() {
    // SAFETY: constructors run before the program can change its environment.
    let variable = unsafe { tare_shm::variable(VARIABLE.as_bytes()) };
    let Some(handover) = variable.and_then(Handover::parse) else { return };
    // Else nothing relates the clock to ticks.
    if !counter::is_readable() {
        return;
    }
    if !memory::has_room(size_of::<Control>() + size_of::<Shared>()) {
        return;
    }
    let control = find(&handover, handover.control, Control::KIND, Access::ReadOnly);
    let shared = find(&handover, handover.shared, Shared::KIND, Access::ReadWrite);
    // SAFETY: both types hold atomics only, and nothing here writes to the first.
    let (control, shared) = unsafe {
        let control = control.and_then(|segment| segment.at::<Control>(0));
        (control, shared.and_then(|segment| segment.at::<Shared>(0)))
    };
    if let (Some(control), Some(shared)) = (control, shared) {
        watch_forks();
        Hook::start(control, shared);
    }
}

/// The segment behind tare-hook's descriptor `fd`: by inheritance, else that of tare-hook or,
/// where it has ended, of our parent.
fn find(handover: &Handover, fd: c_int, kind: u32, access: Access) -> Option<Segment> {
    let Handover { pid, start, .. } = *handover;
    let segment = StarterSegment { pid, start, fd, kind, version: VERSION, access };
    segment.find([pid, syscall::getppid()])
}
