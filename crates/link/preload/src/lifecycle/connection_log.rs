// SPDX-License-Identifier: Apache-2.0
//! What became of each connection, one line each, in the file that `TARE_LINK_LOG` names.

use crate::lifecycle::endpoint_name::ends;
use crate::state;
use core::cell::UnsafeCell;
use core::ffi::{CStr, c_int};
use core::sync::atomic::AtomicBool;
use core::sync::atomic::Ordering::{Acquire, Release};
use tare_link_segment::{Endpoint, Reason};
use tare_shm::syscall::{self, call};

const LONGEST_PATH: usize = 512;
/// Another user may have put a link or a pipe there since `tare link` checked the file: a link is
/// not followed, and no call waits for a pipe.
const FLAGS: c_int =
    libc::O_WRONLY | libc::O_APPEND | libc::O_NOFOLLOW | libc::O_NONBLOCK | libc::O_NOCTTY;

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

/// A connection stays TCP.
#[cold]
pub fn stays_tcp(fd: c_int, reason: Reason) {
    state::count_reason(|statistics| &statistics.stayed, reason);
    line(fd, ["stays TCP: ", reason.text()]);
}

/// A link goes back to TCP for good.
#[cold]
pub fn leaves_link(fd: c_int, reason: Reason) {
    line(fd, ["goes back to TCP for good: ", reason.text()]);
}

/// What became of a connection.
pub fn line(fd: c_int, what: [&str; 2]) {
    if IS_ON.load(Acquire) && !syscall::are_forbidden() {
        write(fd, what);
    }
}

#[cold]
#[inline(never)]
fn write(fd: c_int, what: [&str; 2]) {
    let mut text = Line { bytes: [0; 256], length: 0 };
    text.add("pid=").number(state::process_number(), 10).add(" fd=").number(fd as u32, 10);
    if let Some([own, other]) = ends(fd) {
        text.add(" local=").end(own).add(" remote=").end(other);
    }
    text.add(" ").add(what[0]).add(what[1]);
    let length = text.length.min(text.bytes.len() - 1);
    text.bytes[length] = b'\n';
    // SAFETY: not written any more.
    let path = unsafe { &*FILE.0.get() };
    let Ok(path) = CStr::from_bytes_until_nul(path) else { return };
    let Ok(file) = syscall::open(path, FLAGS) else { return };
    // Root's, or our user's.
    if syscall::fstat(file).is_ok_and(|file| [0, syscall::geteuid()].contains(&file.st_uid)) {
        let place = text.bytes.as_ptr().addr();
        // SAFETY: the kernel reads the line.
        let _ = unsafe { call(libc::SYS_write, [file as usize, place, length + 1, 0, 0, 0]) };
    }
    syscall::close(file);
}

/// A text on the stack, cut where it has no more room. Formatting addresses with `core::fmt` would add
/// 7 KB to the library.
struct Line {
    bytes: [u8; 256],
    length: usize,
}

impl Line {
    fn add(&mut self, text: &str) -> &mut Self {
        text.bytes().for_each(|byte| self.byte(byte));
        self
    }

    fn byte(&mut self, byte: u8) {
        if let Some(place) = self.bytes.get_mut(self.length) {
            *place = byte;
            self.length += 1;
        }
    }

    fn number(&mut self, number: u32, base: u32) -> &mut Self {
        if number >= base {
            self.number(number / base, base);
        }
        self.byte(b"0123456789abcdef"[(number % base) as usize]);
        self
    }

    /// Address and port.
    fn end(&mut self, end: Endpoint) -> &mut Self {
        match end.address {
            [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, rest @ ..] => {
                for (place, byte) in rest.into_iter().enumerate() {
                    self.add(if place > 0 { "." } else { "" }).number(byte.into(), 10);
                }
            }
            address => {
                self.add("[").groups(address).add("]");
            }
        }
        self.add(":").number(end.port.into(), 10)
    }

    /// An IPv6 address; the longest zeros are left out (RFC 5952).
    fn groups(&mut self, address: [u8; 16]) -> &mut Self {
        let group = |place: usize| u16::from_be_bytes([address[2 * place], address[2 * place + 1]]);
        let zeros = |from: usize| (from..8).take_while(|place| group(*place) == 0).count();
        let longest = (0..8).rev().max_by_key(|from| zeros(*from)).unwrap_or(0);
        let left_out = if zeros(longest) > 1 { longest..longest + zeros(longest) } else { 8..8 };
        for place in 0..8 {
            if place == left_out.start {
                self.add("::");
            } else if !left_out.contains(&place) {
                self.add(if place > 0 && place != left_out.end { ":" } else { "" });
                self.number(group(place).into(), 16);
            }
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::net::{IpAddr, Ipv6Addr, SocketAddr};

    #[test]
    fn addresses_are_written_as_the_standard_library_writes_them() {
        for groups in [
            [0, 0, 0, 0, 0, 0, 0, 0],
            [0, 0, 0, 0, 0, 0, 0, 1],
            [0xfe80, 0, 0, 0, 0, 0, 0, 0],
            [0x2001, 0xdb8, 0, 0, 1, 0, 0, 1],
            [0x2001, 0xdb8, 0, 1, 1, 1, 0, 1],
            [1, 0, 0, 2, 0, 0, 0, 3],
            [0, 0, 0, 0, 0, 0xffff, 0x7f00, 1],
            [0xffff; 8],
        ] {
            let address = Ipv6Addr::from(groups);
            let mut line = Line { bytes: [0; 256], length: 0 };
            line.end(Endpoint { address: address.octets(), port: 65_535 });
            let expected = SocketAddr::new(IpAddr::V6(address).to_canonical(), 65_535).to_string();
            assert_eq!(&line.bytes[..line.length], expected.as_bytes(), "{expected}");
        }
    }
}
