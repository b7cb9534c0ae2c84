// SPDX-License-Identifier: Apache-2.0
//! The number of links, and which slots may be free.

use core::sync::atomic::AtomicU32;
use core::sync::atomic::Ordering::Relaxed;

/// No slot before this one is free.
static LOWEST_FREE: AtomicU32 = AtomicU32::new(0);
/// Slots that are used.
static LINK_COUNT: AtomicU32 = AtomicU32::new(0);

pub fn lowest_free() -> u32 {
    LOWEST_FREE.load(Relaxed)
}

pub fn link_count() -> u32 {
    LINK_COUNT.load(Relaxed)
}

/// The first free slot has a link now.
pub fn allocated(place: u32) {
    LINK_COUNT.fetch_add(1, Relaxed);
    LOWEST_FREE.store(place + 1, Relaxed);
}

/// A slot has no link any more.
pub fn freed(place: u32) {
    LINK_COUNT.fetch_sub(1, Relaxed);
    LOWEST_FREE.fetch_min(place, Relaxed);
}
