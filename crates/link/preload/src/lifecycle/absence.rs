// SPDX-License-Identifier: Apache-2.0
//! Other ends that did not come lately. Waiting for one costs a socket: tens of microseconds, which
//! are too much for a connection of a few messages.

use crate::kernel;
use crate::lifecycle::endpoint_name::ends;
use crate::state::connection::Connection;
use core::ffi::c_int;
use core::sync::atomic::AtomicU64;
use core::sync::atomic::Ordering::Relaxed;

/// Milliseconds after which it may have come: a program was started again, with the link.
const LATELY: u32 = 250;

/// The upper half of a key, and the millisecond at which the other end was not there. Of two keys with
/// the same place, the later one is known.
static ABSENT: [AtomicU64; 1024] = [const { AtomicU64::new(0) }; 1024];

/// The other end of a connection did not come, though it had an occasion.
pub fn note(fd: c_int, connection: &Connection) {
    if let Some(key) = key(fd, connection) {
        place(key).store(key >> 32 << 32 | u64::from(now()), Relaxed);
    }
}

/// Whether the other end of a connection like this one was not there lately.
pub fn is_likely(fd: c_int, connection: &Connection) -> bool {
    key(fd, connection).is_some_and(|key| {
        let known = place(key).load(Relaxed);
        known >> 32 == key >> 32 && now().wrapping_sub(known as u32) < LATELY
    })
}

/// What the next connections have in common with this one: the server that the program connects to,
/// or the host of a client and the program's own port. A client's port is another one each time.
fn key(fd: c_int, connection: &Connection) -> Option<u64> {
    let [own, other] = ends(fd)?;
    let is_accepted = connection.is_accepted.load(Relaxed) != 0;
    let port = if is_accepted { own.port } else { other.port };
    let bytes = other.address.into_iter().chain(port.to_ne_bytes()).chain([is_accepted.into()]);
    // FNV-1a.
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
