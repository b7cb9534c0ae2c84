// SPDX-License-Identifier: Apache-2.0
use crate::record::hook::Hook;
use core::ffi::c_int;
use core::fmt::Write;
use tare_clock::counter;
use tare_hook_segment::{Control, Handover, Shared, VARIABLE, VERSION};
use tare_interpose::watch_forks;
use tare_shm::peer::Peers;
use tare_shm::{Access, Path, Segment, found, memory, syscall};

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
/// where it has ended, of our parent. It is the right one if it names the same owner as the
/// variable; and what is found, if it is this user's or root's: numbers of processes return.
fn find(handover: &Handover, fd: c_int, kind: u32, access: Access) -> Option<Segment> {
    let open = |fd| {
        let segment = Segment::open(fd, kind, VERSION, access).ok()?;
        let header = segment.header();
        (header.owner_pid == handover.pid && header.owner_start == handover.start)
            .then_some(segment)
    };
    let peers = Peers::get(None);
    let of = |pid: u32| {
        let mut path = Path::new();
        write!(path, "/proc/{pid}/fd/{fd}").ok()?;
        let fd = found::open(path.text()?, access, |user| peers.admit(user)).ok()?;
        let segment = open(fd);
        syscall::close(fd);
        segment
    };
    open(fd).or_else(|| of(handover.pid)).or_else(|| of(syscall::getppid()))
}
