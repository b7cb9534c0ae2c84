// SPDX-License-Identifier: Apache-2.0
//! The program limits its address space, or locks all of its memory: the hook unmaps what no thread
//! of the program uses. A thread without a ring gets none any more: its events are counted as lost.

use crate::record::hook::Hook;
use crate::thread::Thread;
use core::ops::Range;
use core::sync::atomic::Ordering::{Relaxed, SeqCst};
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64};
use tare_hook_segment::{Control, EventRing, RINGS, SHARDS, Shared, Statistics, TABLE};
use tare_shm::{memory, process};

/// Entries of a table that stay mapped at least: room for rules that are added later.
const SPARE_ENTRIES: usize = 1 << 16;

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

/// Whether this ring is mapped, and stays so.
pub fn keep(place: usize) -> bool {
    KEPT[place / 64].fetch_or(1 << (place % 64), SeqCst);
    !IS_SHRUNK.load(SeqCst)
}

/// The copy of the statistics that a thread counts in.
#[inline]
pub fn shard(tid: u32) -> usize {
    match ONLY_SHARD.load(Relaxed) {
        0 => tid as usize % SHARDS,
        only => only as usize - 1,
    }
}

/// As `Control::view_of` takes it.
#[inline]
pub fn mask() -> u32 {
    MASK.load(Relaxed)
}

/// To be called before the program's own call.
pub fn shrink() {
    let Some(hook) = Hook::get() else { return };
    let thread = Thread::get();
    if thread.is_borrowed() || IS_SHRUNK.swap(true, SeqCst) {
        return;
    }
    unmap_rings(hook.shared);
    // Another thread could be anywhere in the statistics and tables, as could a search that a
    // signal handler interrupts.
    if process::has_one_thread() && thread.state.searching.load(Relaxed) == 0 {
        unmap_shards(hook.shared, shard(thread.identity().1));
        MASK.store(hook.control.mask(SPARE_ENTRIES), Relaxed);
    }
    unmap_rules(hook.control);
}

fn unmap_rings(shared: &Shared) {
    let kept = |place: usize| KEPT[place / 64].load(SeqCst) & 1 << (place % 64) != 0;
    let first = (&raw const shared.rings).addr();
    let end = |place: usize| first + place * size_of::<EventRing>();
    let mut place = 0;
    while place < RINGS {
        let from = place;
        while place < RINGS && !kept(place) {
            place += 1;
        }
        // SAFETY: no thread has one of these rings, or gets one any more.
        unsafe { unmap(end(from)..end(place)) };
        place += 1;
    }
}

/// All but one. Only for the only thread.
fn unmap_shards(shared: &Shared, kept: usize) {
    ONLY_SHARD.store(kept as u32 + 1, Relaxed);
    let first = (&raw const shared.statistics).addr();
    let end = |place: usize| first + place * size_of::<Statistics>();
    // SAFETY: this thread counts in the one that is kept, as will all that it starts.
    unsafe {
        unmap(end(0)..end(kept));
        unmap(end(kept + 1)..end(SHARDS));
    }
}

fn unmap_rules(control: &Control) {
    for unneeded in control.unneeded(mask()) {
        // SAFETY: no search goes beyond the mask, or reads texts.
        unsafe { unmap(unneeded) };
    }
}

/// # Safety
/// Nothing uses these addresses any more.
unsafe fn unmap(addresses: Range<usize>) {
    // SAFETY: as the caller promises.
    unsafe { memory::unmap_pages(addresses.start, addresses.end) };
}
