// SPDX-License-Identifier: Apache-2.0
//! The program limits its address space, or locks all of its memory: the hook unmaps what no thread
//! of the program uses. A thread without a ring gets none any more: its events are counted as lost.

use crate::record::hook::Hook;
use crate::record::mapped;
use crate::thread::Thread;
use core::ops::Range;
use core::sync::atomic::Ordering::Relaxed;
use tare_hook_segment::{Control, EventRing, RINGS, SHARDS, Shared, Statistics};
use tare_shm::{memory, process};

/// Entries of a table that stay mapped at least: room for rules that are added later.
const SPARE_ENTRIES: usize = 1 << 16;

/// Before the program's own call, by a process that shares its memory with no other.
pub fn shrink() {
    let Some(hook) = Hook::get() else { return };
    if !mapped::close_rings() {
        return;
    }
    let thread = Thread::get();
    unmap_rings(hook.shared);
    unmap_shards(hook.shared, thread.identity().1);
    // Another thread could be anywhere in the tables, as could a search that is interrupted here.
    if process::has_one_thread() && thread.state.searching.load(Relaxed) == 0 {
        mapped::keep_tables_up_to(hook.control.mask(SPARE_ENTRIES));
    }
    unmap_rules(hook.control);
}

fn unmap_rings(shared: &Shared) {
    let first = (&raw const shared.rings).addr();
    let end = |place: usize| first + place * size_of::<EventRing>();
    let mut place = 0;
    while place < RINGS {
        let from = place;
        while place < RINGS && !mapped::is_kept(place) {
            place += 1;
        }
        // SAFETY: no thread has one of these rings, or gets one any more.
        unsafe { unmap(end(from)..end(place)) };
        place += 1;
    }
}

fn unmap_shards(shared: &Shared, tid: u32) {
    mapped::shard(tid);
    let is_used = mapped::close_shards();
    let first = (&raw const shared.statistics).addr();
    let end = |place: usize| first + place * size_of::<Statistics>();
    for place in (0..SHARDS).filter(|place| !is_used(*place)) {
        // SAFETY: no thread counts in it, or will.
        unsafe { unmap(end(place)..end(place + 1)) };
    }
}

fn unmap_rules(control: &Control) {
    for unneeded in control.unneeded(mapped::mask()) {
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
