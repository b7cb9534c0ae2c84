// SPDX-License-Identifier: Apache-2.0
//! Memory of the program that can be read or written without a fault: anonymous private mappings, as
//! /proc/self/maps has them. Heaps and stacks are such. Files are not: another process can make
//! them shorter, and the kernel's call would then return EFAULT where a copy would end the program.
//!
//! What was found is forgotten when the program changes its mappings (`mapped`).

use crate::state;
use core::ffi::c_int;
use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, fence};
use libc::iovec;
use tare_shm::syscall;

/// Mappings that are known at a time.
const COUNT: usize = 8;
/// Unknown addresses before the file is read again; twice as many after each time.
const FIRST_SEARCH_AFTER: u32 = 8;
const MOST: u32 = 1 << 16;

/// A mapping. A reader takes it only if `version` is even and the same before and after.
struct Known {
    version: AtomicU32,
    /// The generation in which it was found.
    generation: AtomicU32,
    start: AtomicUsize,
    end: AtomicUsize,
    is_writable: AtomicBool,
}

static KNOWN: [Known; COUNT] = [const {
    Known {
        version: AtomicU32::new(0),
        generation: AtomicU32::new(0),
        start: AtomicUsize::new(0),
        end: AtomicUsize::new(0),
        is_writable: AtomicBool::new(false),
    }
}; COUNT];
/// Raised with each change; 0 is nothing that was found.
static GENERATION: AtomicU32 = AtomicU32::new(1);
static PROCESS: AtomicU32 = AtomicU32::new(0);
static IS_SEARCHING: AtomicBool = AtomicBool::new(false);
static UNKNOWN: AtomicU32 = AtomicU32::new(0);
static SEARCH_AFTER: AtomicU32 = AtomicU32::new(FIRST_SEARCH_AFTER);
static NEXT: AtomicU32 = AtomicU32::new(0);
static IS_OFF: AtomicBool = AtomicBool::new(false);

/// The program changes its mappings, or has done so.
pub fn changed() {
    GENERATION.fetch_add(1, AcqRel);
}

/// The program uses protection that the file does not show.
pub fn stop() {
    IS_OFF.store(true, Release);
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Access {
    Read,
    Write,
}

/// Whether the program's buffers can be accessed without the kernel.
pub fn allows(buffers: &[iovec], access: Access) -> bool {
    if IS_OFF.load(Acquire) {
        return false;
    }
    // Mappings of the parent may be missing in the child of a fork.
    let process = state::process_number();
    if PROCESS.load(Relaxed) != process {
        changed();
        PROCESS.store(process, Relaxed);
    }
    let generation = GENERATION.load(Acquire);
    buffers.iter().all(|buffer| {
        let start = buffer.iov_base.addr();
        let Some(end) = start.checked_add(buffer.iov_len) else { return false };
        let is_known = || KNOWN.iter().any(|known| known.has(start, end, generation, access));
        start == end || is_known() || (learn(start, generation) && is_known())
    })
}

impl Known {
    fn has(&self, start: usize, end: usize, generation: u32, access: Access) -> bool {
        let version = self.version.load(Acquire);
        let has = self.start.load(Relaxed) <= start
            && end <= self.end.load(Relaxed)
            && self.generation.load(Relaxed) == generation
            && (access == Access::Read || self.is_writable.load(Relaxed));
        fence(Acquire);
        has && version.is_multiple_of(2) && self.version.load(Relaxed) == version
    }

    fn set(&self, found: &Mapping, generation: u32) {
        let version = self.version.load(Relaxed) | 1;
        self.version.store(version, Relaxed);
        fence(Release);
        self.start.store(found.start, Relaxed);
        self.end.store(found.end, Relaxed);
        self.is_writable.store(found.is_writable, Relaxed);
        self.generation.store(generation, Relaxed);
        self.version.store(version.wrapping_add(1), Release);
    }
}

/// Looks for the mapping of an address, if that is due. True if it was found.
fn learn(address: usize, generation: u32) -> bool {
    if UNKNOWN.fetch_add(1, Relaxed) < SEARCH_AFTER.load(Relaxed) {
        return false;
    }
    search(address, generation)
}

#[cold]
#[inline(never)]
fn search(address: usize, generation: u32) -> bool {
    if syscall::are_forbidden() || IS_SEARCHING.swap(true, Acquire) {
        return false;
    }
    UNKNOWN.store(0, Relaxed);
    let next = SEARCH_AFTER.load(Relaxed).saturating_mul(2);
    SEARCH_AFTER.store(next.min(MOST), Relaxed);
    let found = find(address);
    if let Some(found) = &found {
        let place = NEXT.fetch_add(1, Relaxed) as usize % COUNT;
        KNOWN[place].set(found, generation);
    }
    IS_SEARCHING.store(false, Release);
    found.is_some()
}

struct Mapping {
    start: usize,
    end: usize,
    is_writable: bool,
}

/// The mapping of an address, if it is anonymous, private and readable.
fn find(address: usize) -> Option<Mapping> {
    let fd = syscall::open(c"/proc/self/maps", libc::O_RDONLY).ok()?;
    let found = find_in(fd, address);
    syscall::close(fd);
    found
}

fn find_in(fd: c_int, address: usize) -> Option<Mapping> {
    let mut text = [0u8; 2048];
    let mut length = 0;
    loop {
        let got = syscall::read(fd, text.get_mut(length..)?).ok().filter(|got| *got > 0)?;
        length += got;
        let mut from = 0;
        while let Some(end) = text[from..length].iter().position(|byte| *byte == b'\n') {
            let line = &text[from..from + end];
            if let Some((start, end, rest)) = range(line)
                && (start..end).contains(&address)
            {
                return mapping(start, end, rest);
            }
            from += end + 1;
        }
        if from == 0 && length == text.len() {
            // A path longer than the buffer: the rest of it has no range.
            length = 0;
        } else {
            text.copy_within(from..length, 0);
            length -= from;
        }
    }
}

/// `start-end rest`
fn range(line: &[u8]) -> Option<(usize, usize, &[u8])> {
    let (start, line) = hexadecimal(line, b'-')?;
    let (end, line) = hexadecimal(line, b' ')?;
    Some((start, end, line))
}

/// A number and what is behind its end.
fn hexadecimal(text: &[u8], end: u8) -> Option<(usize, &[u8])> {
    let length = text.iter().position(|byte| *byte == end).filter(|length| *length > 0)?;
    let number = text[..length].iter().try_fold(0usize, |sum, digit| {
        let value = char::from(*digit).to_digit(16)?;
        sum.checked_mul(16)?.checked_add(value as usize)
    })?;
    Some((number, &text[length + 1..]))
}

/// `rwxp offset device inode path`
fn mapping(start: usize, end: usize, rest: &[u8]) -> Option<Mapping> {
    let mut fields = rest.split(|byte| *byte == b' ');
    let flags = fields.next()?;
    let inode = fields.nth(2)?;
    let is_usable = flags.first() == Some(&b'r') && flags.get(3) == Some(&b'p') && inode == b"0";
    is_usable.then(|| Mapping { start, end, is_writable: flags[1] == b'w' })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_maps_are_read() {
        let line = b"7f10-7f2f rw-p 00000000 00:00 0 ";
        let (start, end, rest) = range(line).unwrap();
        assert_eq!((start, end), (0x7f10, 0x7f2f));
        assert!(mapping(start, end, rest).unwrap().is_writable);
        for rest in [
            &b"rw-s 00000000 00:00 0 "[..],
            b"rw-p 00000000 fe:00 12   /bin/true",
            b"---p 00000000 00:00 0 ",
            b"rw-p",
            b"",
        ] {
            assert!(mapping(1, 2, rest).is_none());
        }
        for line in [&b"7f10"[..], b"-7f2f rw", b"7g-8 r", b"10000000000000000-1 r"] {
            assert!(range(line).is_none());
        }
    }

    #[test]
    fn heap_and_stack_are_found_and_code_is_not() {
        let (heap, stack) = (vec![0u8; 1 << 16], [0u8; 16]);
        for address in [heap.as_ptr().addr(), stack.as_ptr().addr()] {
            assert!(find(address).unwrap().is_writable);
        }
        let code: fn() = heap_and_stack_are_found_and_code_is_not;
        assert!(find(code as usize).is_none() && find(64).is_none());
    }

    #[test]
    fn a_change_makes_known_buffers_unknown() {
        let bytes = vec![0u8; 1 << 16];
        let buffer = [iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() }];
        let tries = (0..200).position(|_| allows(&buffer, Access::Write));
        assert!(tries.is_some());
        changed();
        assert!(!allows(&buffer, Access::Read));
    }
}
