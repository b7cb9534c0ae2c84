// SPDX-License-Identifier: Apache-2.0
use crate::hook::Hook;
use core::ffi::{CStr, c_char, c_int};
use core::fmt::{self, Write};
use tare_hook_segment::{Control, Handover, Shared, VARIABLE, VERSION};
use tare_interpose::{real, watch_forks};
use tare_shm::{Access, Segment, syscall};

/// Finds the segments and begins to work; where there are none, everything is forwarded.
pub extern "C" fn constructor() {
    real::resolve_all();
    let Some(handover) = environment(VARIABLE.as_bytes()).and_then(Handover::parse) else { return };
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
/// variable.
fn find(handover: &Handover, fd: c_int, kind: u32, access: Access) -> Option<Segment> {
    let open = |fd| {
        let segment = Segment::open(fd, kind, VERSION, access).ok()?;
        let header = segment.header();
        (header.owner_pid == handover.pid && header.owner_start == handover.start)
            .then_some(segment)
    };
    let of = |pid: u32| {
        let mut path = Path { bytes: [0; 48], length: 0 };
        write!(path, "/proc/{pid}/fd/{fd}\0").ok()?;
        let path = CStr::from_bytes_until_nul(&path.bytes).ok()?;
        let rights = if access == Access::ReadOnly { libc::O_RDONLY } else { libc::O_RDWR };
        // By now the number may be a pipe's, which waits for a writer, or a terminal's.
        let fd = syscall::open(path, rights | libc::O_NONBLOCK | libc::O_NOCTTY).ok()?;
        let segment = open(fd);
        syscall::close(fd);
        segment
    };
    open(fd).or_else(|| of(handover.pid)).or_else(|| of(syscall::getppid()))
}

/// Text on the stack.
struct Path {
    bytes: [u8; 48],
    length: usize,
}

impl Write for Path {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let end = self.length + text.len();
        let place = self.bytes.get_mut(self.length..end).ok_or(fmt::Error)?;
        place.copy_from_slice(text.as_bytes());
        self.length = end;
        Ok(())
    }
}

unsafe extern "C" {
    static environ: *const *const c_char;
}

/// The value of variable `name`.
fn environment(name: &[u8]) -> Option<&'static [u8]> {
    // SAFETY: constructors run before the program can change its environment; libc has set
    // the pointer up (null where there is none), and the list ends with null.
    unsafe {
        let mut place = environ;
        while !place.is_null() && !(*place).is_null() {
            let text = CStr::from_ptr(*place).to_bytes();
            if let Some([b'=', value @ ..]) = text.strip_prefix(name) {
                return Some(value);
            }
            place = place.add(1);
        }
    }
    None
}
