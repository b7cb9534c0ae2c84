// SPDX-License-Identifier: Apache-2.0
//! Servers whose end did not come lately. Waiting for one costs a socket: tens of microseconds, which
//! are too much for a connection of a few messages.
//!
//! Only the end that has connected remembers and skips. If both did, each would find the other one
//! absent whenever its own time is over, for good.

use crate::kernel;
use crate::lifecycle::endpoint_name::other_end;
use core::ffi::c_int;
use core::sync::atomic::AtomicU64;
use core::sync::atomic::Ordering::Relaxed;

/// Milliseconds after which a server may have come: it was started again, with the library.
const LATELY: u32 = 250;

/// The upper half of the hash of an address, and the millisecond at which its server did not come. Of
/// two servers with the same place, the later one is known.
static ABSENT: [AtomicU64; 1024] = [const { AtomicU64::new(0) }; 1024];

/// The server at the other end of a connection did not come, though it had an occasion.
pub fn note(fd: c_int) {
    if let Some(key) = key(fd) {
        place(key).store(key >> 32 << 32 | u64::from(now()), Relaxed);
    }
}

/// Whether the server at the other end of a connection was absent lately.
pub fn is_likely(fd: c_int) -> bool {
    key(fd).is_some_and(|key| {
        let known = place(key).load(Relaxed);
        known >> 32 == key >> 32 && now().wrapping_sub(known as u32) < LATELY
    })
}

/// FNV-1a of the server's address and port.
fn key(fd: c_int) -> Option<u64> {
    let other = other_end(fd)?;
    let bytes = other.address.into_iter().chain(other.port.to_ne_bytes());
    Some(bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)
    }))
}

fn place(key: u64) -> &'static AtomicU64 {
    &ABSENT[key as usize % ABSENT.len()]
}

fn now() -> u32 {
    kernel::now() as u32
}
