// SPDX-License-Identifier: Apache-2.0
//! What a user says from outside, by environment variables.

use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use core::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicUsize};
use tare_clock::Source;
use tare_log_segment::layout::{LARGEST_RING, SMALLEST_RING};

/// Names the socket of the collector. With it, events are kept from the beginning, also while
/// no collector is there.
pub const SOCKET: &[u8] = b"TARE_LOG";
/// Bytes of a ring, with K, M or G behind; rounded up to a power of two.
pub const RING: &[u8] = b"TARE_LOG_RING";
/// What times are read from: tsc, tscp or monotonic.
pub const CLOCK: &[u8] = b"TARE_LOG_CLOCK";
/// User ID of the collector in this user namespace, if it is neither the program's nor 0.
pub const USER: &[u8] = b"TARE_LOG_UID";
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

/// Takes the path of the socket; false if it is too long.
pub fn set_socket(path: &[u8]) -> bool {
    if path.len() >= PATH {
        return false;
    }
    for (place, byte) in PATH_TEXT.iter().zip(path) {
        place.store(*byte, Relaxed);
    }
    IS_TOLD.store(true, Release);
    true
}

/// Takes the size of a ring; false if it is none.
pub fn set_ring(text: &[u8]) -> bool {
    let bytes = size(text);
    if let Some(bytes) = bytes {
        let bytes = bytes.clamp(SMALLEST_RING, LARGEST_RING).next_power_of_two();
        RING_BYTES.store(bytes, Relaxed);
    }
    bytes.is_some()
}

/// Takes the collector's user ID; false if it is none.
pub fn set_user(text: &[u8]) -> bool {
    let user = user(text);
    if let Some(number) = user {
        COLLECTORS_USER.store(number, Relaxed);
    }
    user.is_some()
}

/// Takes the name of a clock; false if it is none.
pub fn set_clock(text: &[u8]) -> bool {
    let source = Source::named(text).filter(|source| *source != Source::Fallback);
    if let Some(source) = source {
        CLOCK_NUMBER.store(source as u32, Relaxed);
    }
    source.is_some()
}

fn user(text: &[u8]) -> Option<u32> {
    core::str::from_utf8(text).ok()?.parse().ok().filter(|user| *user != NO_USER)
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
