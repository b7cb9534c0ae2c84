// SPDX-License-Identifier: Apache-2.0
//! The number of links, and which slots may be free.

use core::sync::atomic::AtomicU32;
use core::sync::atomic::Ordering::Relaxed;

/// No slot before this one is free.
static LOWEST: AtomicU32 = AtomicU32::new(0);
/// Slots that are used.
static LIVE: AtomicU32 = AtomicU32::new(0);

pub fn lowest() -> u32 {
    LOWEST.load(Relaxed)
}

pub fn live() -> u32 {
    LIVE.load(Relaxed)
}

/// The first free slot has a link now.
pub fn filled(place: u32) {
    LIVE.fetch_add(1, Relaxed);
    LOWEST.store(place + 1, Relaxed);
}

/// A slot has no link any more.
pub fn freed(place: u32) {
    LIVE.fetch_sub(1, Relaxed);
    LOWEST.fetch_min(place, Relaxed);
}
