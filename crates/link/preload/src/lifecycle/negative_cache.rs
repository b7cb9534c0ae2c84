// SPDX-License-Identifier: Apache-2.0
//! A negative cache (RFC 2308): servers whose end did not come lately. Waiting for one costs a socket:
//! tens of microseconds, which are too much for a connection of a few messages.
//!
//! Only the end that has connected remembers and skips. If both did, each would find the other one
//! absent whenever its own time is over, for good.

use crate::kernel;
use crate::lifecycle::endpoint_name::other_end;
use core::ffi::c_int;
use core::sync::atomic::AtomicU64;
use core::sync::atomic::Ordering::Relaxed;

/// Milliseconds for which an absent server is not waited for: then it may have been started again,
/// with the library. They double each time that it is still absent, at most so many times.
const FIRST_TTL: u32 = 250;
const MAX_DOUBLINGS: u64 = 5;

/// Bits of a word of `ENTRIES`: milliseconds, and above them the number of doublings.
const TIME: u32 = 32;
const DOUBLINGS: u32 = 4;

/// The upper bits of the hash of an address, how often its server was absent in succession, and the
/// millisecond at which it did not come. Of two servers with the same place, the later one is known.
static ENTRIES: [AtomicU64; 1024] = [const { AtomicU64::new(0) }; 1024];

/// The server at the other end of a connection did not come, though it had an occasion.
pub fn insert(fd: c_int) {
    if let Some(key) = key(fd) {
        let (entry, now) = (entry(key), now());
        entry.store(next_entry(entry.load(Relaxed), key, now), Relaxed);
    }
}

/// Whether the server at the other end of a connection was absent lately.
pub fn contains(fd: c_int) -> bool {
    key(fd).is_some_and(|key| is_fresh(entry(key).load(Relaxed), key, now()))
}

/// The word of a server that has `known`, and is absent `now`.
fn next_entry(known: u64, key: u64, now: u32) -> u64 {
    let doublings = match age(known, key, now) {
        // Waited for as soon as the time was over, in vain.
        Some(age) if age < 2 * ttl(known) => (doublings(known) + 1).min(MAX_DOUBLINGS),
        _ => 0,
    };
    hash(key) << (TIME + DOUBLINGS) | doublings << TIME | u64::from(now)
}

fn is_fresh(known: u64, key: u64, now: u32) -> bool {
    age(known, key, now).is_some_and(|age| age < ttl(known))
}

/// Milliseconds since the server of this key was absent, if the word is of that one.
fn age(known: u64, key: u64, now: u32) -> Option<u32> {
    (known >> (TIME + DOUBLINGS) == hash(key)).then(|| now.wrapping_sub(known as u32))
}

/// Milliseconds for which the server is not waited for.
fn ttl(known: u64) -> u32 {
    FIRST_TTL << doublings(known)
}

fn doublings(known: u64) -> u64 {
    known >> TIME & ((1 << DOUBLINGS) - 1)
}

fn hash(key: u64) -> u64 {
    key >> (TIME + DOUBLINGS)
}

/// FNV-1a of the server's address and port.
fn key(fd: c_int) -> Option<u64> {
    let other = other_end(fd)?;
    let bytes = other.address.into_iter().chain(other.port.to_ne_bytes());
    Some(bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)
    }))
}

fn entry(key: u64) -> &'static AtomicU64 {
    &ENTRIES[key as usize % ENTRIES.len()]
}

fn now() -> u32 {
    kernel::now() as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: u64 = 0xfeed_beef_1234_5678;

    #[test]
    fn a_server_that_stays_absent_is_waited_for_ever_more_seldom() {
        let (mut entry, mut now) = (0, u32::MAX - 1000);
        let mut ttls = [0; 8];
        for waited in &mut ttls {
            entry = next_entry(entry, KEY, now);
            while is_fresh(entry, KEY, now) {
                now = now.wrapping_add(1);
                *waited += 1;
            }
        }
        assert_eq!(ttls, [250, 500, 1000, 2000, 4000, 8000, 8000, 8000]);
    }

    #[test]
    fn one_that_was_not_asked_for_long_is_waited_for_as_at_first() {
        let first = next_entry(0, KEY, 5);
        let second = next_entry(first, KEY, 5 + 250);
        assert_eq!(doublings(second), 1);
        assert_eq!(doublings(next_entry(second, KEY, 5 + 250 + 1000)), 0);
    }

    #[test]
    fn another_server_is_not_known() {
        let entry = next_entry(0, KEY, 5);
        assert!(is_fresh(entry, KEY, 6));
        assert!(!is_fresh(entry, !KEY, 6));
        assert_eq!(doublings(next_entry(entry, !KEY, 300)), 0);
    }
}
