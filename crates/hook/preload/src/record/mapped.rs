// SPDX-License-Identifier: Apache-2.0
//! What is still mapped of the segments after the program has limited its memory.

use core::sync::atomic::Ordering::{Relaxed, SeqCst};
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64};
use tare_hook_segment::{RINGS, SHARDS, TABLE};

static IS_SHRUNK: AtomicBool = AtomicBool::new(false);
/// A bit for each ring that a thread of this process has had.
static KEPT: [AtomicU64; RINGS / 64] = [const { AtomicU64::new(0) }; RINGS / 64];
/// 1 + the only copy of the statistics that is mapped; 0 for all.
static ONLY_SHARD: AtomicU32 = AtomicU32::new(0);
/// The last place of each table that is mapped.
static MASK: AtomicU32 = AtomicU32::new(TABLE as u32 - 1);

/// Whether rings that no thread has are not mapped.
pub fn is_shrunk() -> bool {
    IS_SHRUNK.load(Relaxed)
}

/// No more rings are kept from now on. False if that was so already.
pub fn close_rings() -> bool {
    !IS_SHRUNK.swap(true, SeqCst)
}

/// Whether this ring is mapped, and stays so.
pub fn keep_ring(place: usize) -> bool {
    KEPT[place / 64].fetch_or(1 << (place % 64), SeqCst);
    !IS_SHRUNK.load(SeqCst)
}

/// Whether a thread of this process has had this ring.
pub fn is_kept(place: usize) -> bool {
    KEPT[place / 64].load(SeqCst) & 1 << (place % 64) != 0
}

/// The copy of the statistics that a thread counts in.
#[inline]
pub fn shard(tid: u32) -> usize {
    match ONLY_SHARD.load(Relaxed) {
        0 => tid as usize % SHARDS,
        only => only as usize - 1,
    }
}

pub fn keep_only_shard(place: usize) {
    ONLY_SHARD.store(place as u32 + 1, Relaxed);
}

/// As `Control::view_of` takes it.
#[inline]
pub fn mask() -> u32 {
    MASK.load(Relaxed)
}

pub fn keep_tables_up_to(mask: u32) {
    MASK.store(mask, Relaxed);
}
