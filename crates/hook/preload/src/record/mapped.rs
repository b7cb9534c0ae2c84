// SPDX-License-Identifier: Apache-2.0
//! What is still mapped of the segments after the program has limited its memory: what a thread has
//! used before is. So it does not matter what other threads do meanwhile, or what a signal handler
//! has interrupted.

use core::sync::atomic::Ordering::{Relaxed, SeqCst};
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64};
use tare_hook_segment::{RINGS, SHARDS, TABLE};

static IS_SHRUNK: AtomicBool = AtomicBool::new(false);
/// A bit for each ring that a thread of this process has had.
static KEPT: [AtomicU64; RINGS / 64] = [const { AtomicU64::new(0) }; RINGS / 64];
/// A bit for each copy of the statistics that a thread of this process, or of those that it was forked
/// from, has counted in; and `CLOSED`.
static SHARDS_IN_USE: AtomicU32 = AtomicU32::new(0);
/// No other copies are mapped.
const CLOSED: u32 = 1 << 31;
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
    let own = tid as usize % SHARDS;
    if SHARDS_IN_USE.load(Relaxed) & 1 << own != 0 { own } else { claim_shard(own) }
}

#[cold]
fn claim_shard(own: usize) -> usize {
    let claim = |used: u32| (used & CLOSED == 0).then_some(used | 1 << own);
    match SHARDS_IN_USE.fetch_update(SeqCst, SeqCst, claim) {
        Ok(_) => own,
        Err(used) if used & 1 << own != 0 => own,
        Err(used) => used.trailing_zeros() as usize,
    }
}

/// No further copies come into use from now on. Whether this one is.
pub fn close_shards() -> impl Fn(usize) -> bool {
    let used = SHARDS_IN_USE.fetch_or(CLOSED, SeqCst);
    move |place| used & 1 << place != 0
}

/// As `Control::view_of` takes it.
#[inline]
pub fn mask() -> u32 {
    MASK.load(Relaxed)
}

pub fn keep_tables_up_to(mask: u32) {
    MASK.store(mask, Relaxed);
}
