// SPDX-License-Identifier: Apache-2.0
//! What became of each connection, one line each, in the file that `TARE_LINK_LOG` names.

use crate::rendezvous::ends;
use crate::state;
use core::cell::UnsafeCell;
use core::ffi::{CStr, c_int};
use core::fmt::{self, Write};
use core::net::{IpAddr, Ipv6Addr, SocketAddr};
use core::sync::atomic::AtomicBool;
use core::sync::atomic::Ordering::{Acquire, Release};
use tare_link_segment::Endpoint;
use tare_shm::syscall::{self, call};

const LONGEST_PATH: usize = 512;

struct File(UnsafeCell<[u8; LONGEST_PATH]>);

// SAFETY: written by the constructor, before `IS_ON`, and not again.
unsafe impl Sync for File {}

static FILE: File = File(UnsafeCell::new([0; LONGEST_PATH]));
static IS_ON: AtomicBool = AtomicBool::new(false);

/// Writes to the file at `path` from now on; for the constructor.
pub fn start(path: &[u8]) {
    if path.len() < LONGEST_PATH {
        // SAFETY: the constructor runs once, and no line is written yet.
        unsafe { (&mut *FILE.0.get())[..path.len()].copy_from_slice(path) };
        IS_ON.store(true, Release);
    }
}

/// What became of a connection.
pub fn line(fd: c_int, what: fmt::Arguments<'_>) {
    if IS_ON.load(Acquire) && !syscall::are_forbidden() {
        write(fd, what);
    }
}

#[cold]
fn write(fd: c_int, what: fmt::Arguments<'_>) {
    let mut text = Line { bytes: [0; 256], length: 0 };
    let _ = write!(text, "pid={} fd={fd} ", state::process_number());
    if let Some([own, other]) = ends(fd) {
        let _ = write!(text, "local={} remote={} ", shown(own), shown(other));
    }
    let _ = write!(text, "{what}");
    let length = text.length.min(text.bytes.len() - 1);
    text.bytes[length] = b'\n';
    // SAFETY: not written any more.
    let path = unsafe { &*FILE.0.get() };
    let Ok(path) = CStr::from_bytes_until_nul(path) else { return };
    let Ok(file) = syscall::open(path, libc::O_WRONLY | libc::O_APPEND) else { return };
    let place = text.bytes.as_ptr().addr();
    // SAFETY: the kernel reads the line.
    let _ = unsafe { call(libc::SYS_write, [file as usize, place, length + 1, 0, 0, 0]) };
    syscall::close(file);
}

fn shown(end: Endpoint) -> SocketAddr {
    SocketAddr::new(IpAddr::V6(Ipv6Addr::from(end.address)).to_canonical(), end.port)
}

struct Line {
    bytes: [u8; 256],
    length: usize,
}

impl Write for Line {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let end = (self.length + text.len()).min(self.bytes.len());
        let room = &mut self.bytes[self.length..end];
        room.copy_from_slice(&text.as_bytes()[..room.len()]);
        self.length = end;
        Ok(())
    }
}
