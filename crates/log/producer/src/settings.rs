// SPDX-License-Identifier: Apache-2.0
//! What a user says from outside: environment variables, read once before the program's own
//! code can change them.

use crate::region::Region;
use crate::warnings;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use core::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicUsize};
use tare_clock::Source;
use tare_log_segment::layout::{LARGEST_RING, SMALLEST_RING};

/// Names the socket of the collector. With it, events are kept from the beginning, also while
/// no collector is there.
const SOCKET: &[u8] = b"TARE_LOG";
/// Bytes of a ring, with K, M or G behind; rounded up to a power of two.
const RING: &[u8] = b"TARE_LOG_RING";
/// What times are read from: tsc, tscp or monotonic.
const CLOCK: &[u8] = b"TARE_LOG_CLOCK";
/// User ID of the collector in this user namespace, if it is neither the program's nor 0.
const USER: &[u8] = b"TARE_LOG_UID";
/// No user has this ID (setresuid(2)).
const NO_USER: u32 = u32::MAX;

const DEFAULT_RING: usize = 4 << 20;

/// Bytes of the longest path of a socket, its end included.
pub const PATH: usize = 108;

static RING_BYTES: AtomicUsize = AtomicUsize::new(DEFAULT_RING);
static CLOCK_NUMBER: AtomicU32 = AtomicU32::new(Source::Tsc as u32);
static PATH_TEXT: [AtomicU8; PATH] = [const { AtomicU8::new(0) }; PATH];
static COLLECTORS_USER: AtomicU32 = AtomicU32::new(NO_USER);
static IS_TOLD: AtomicBool = AtomicBool::new(false);
static IS_READ: AtomicBool = AtomicBool::new(false);

/// Bytes of a ring.
pub fn ring_bytes() -> usize {
    RING_BYTES.load(Relaxed)
}

/// What times are to be read from.
pub fn clock() -> Source {
    Source::numbered(CLOCK_NUMBER.load(Relaxed))
}

/// The path of the collector's socket, ended with 0, where the user names one.
pub fn socket() -> Option<[u8; PATH]> {
    IS_TOLD.load(Acquire).then(|| core::array::from_fn(|index| PATH_TEXT[index].load(Relaxed)))
}

/// The user ID in `TARE_LOG_UID`.
pub fn collectors_user() -> Option<u32> {
    Some(COLLECTORS_USER.load(Relaxed)).filter(|user| *user != NO_USER)
}

/// To be called when the program starts, before it can change its environment; and by whoever
/// comes earlier, as constructors of a program do that the library is a part of.
pub extern "C" fn read_environment() {
    // Whoever starts a program with more rights than his own does not say where its events go.
    // SAFETY: asks for a number that the kernel has given the program.
    let has_more_rights = unsafe { libc::getauxval(libc::AT_SECURE) } != 0;
    if IS_READ.swap(true, Relaxed) || has_more_rights {
        return;
    }
    let path = variable(SOCKET);
    if path.is_some() {
        warnings::note_stderr();
    }
    match path {
        Some(path) if path.len() < PATH => {
            for (place, byte) in PATH_TEXT.iter().zip(path) {
                place.store(*byte, Relaxed);
            }
            IS_TOLD.store(true, Release);
            // A child of vfork that logs first finds that it is another process.
            let _ = Region::get_or_make();
        }
        Some(_) => warnings::SOCKET.say_to_anyone(),
        None => {}
    }
    if let Some(text) = variable(RING) {
        match size(text) {
            Some(bytes) => {
                let bytes = bytes.clamp(SMALLEST_RING, LARGEST_RING).next_power_of_two();
                RING_BYTES.store(bytes, Relaxed);
            }
            None => warnings::RING.say(),
        }
    }
    if let Some(text) = variable(USER) {
        match user(text) {
            Some(number) => COLLECTORS_USER.store(number, Relaxed),
            None => warnings::USER.say(),
        }
    }
    if let Some(text) = variable(CLOCK) {
        match Source::named(text).filter(|source| *source != Source::Fallback) {
            Some(source) => CLOCK_NUMBER.store(source as u32, Relaxed),
            None => warnings::CLOCK.say(),
        }
    }
}

fn user(text: &[u8]) -> Option<u32> {
    core::str::from_utf8(text).ok()?.parse().ok().filter(|user| *user != NO_USER)
}

/// `None` where it is empty.
fn variable(name: &[u8]) -> Option<&'static [u8]> {
    // SAFETY: at the start of the program nothing else changes the environment.
    unsafe { tare_shm::variable(name) }.filter(|value| !value.is_empty())
}

/// `4M` is 4 MiB.
fn size(text: &[u8]) -> Option<usize> {
    let (digits, shift) = match text {
        [digits @ .., b'K' | b'k'] => (digits, 10),
        [digits @ .., b'M' | b'm'] => (digits, 20),
        [digits @ .., b'G' | b'g'] => (digits, 30),
        digits => (digits, 0),
    };
    core::str::from_utf8(digits).ok()?.parse::<usize>().ok()?.checked_mul(1 << shift)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_the_usual_letters() {
        for (text, bytes) in
            [("65536", 65536), ("64K", 65536), ("64k", 65536), ("4M", 4 << 20), ("1G", 1 << 30)]
        {
            assert_eq!(size(text.as_bytes()), Some(bytes), "{text}");
        }
        for text in ["", "M", "-1", "4MiB", "18446744073709551615G"] {
            assert_eq!(size(text.as_bytes()), None, "{text}");
        }
    }
}
