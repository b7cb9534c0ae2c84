// SPDX-License-Identifier: Apache-2.0
//! The program limits its address space, or locks all of its memory: the hook unmaps the rings that
//! no thread of the program has. A thread that has none by then gets none: its events are counted
//! as lost.

use crate::record::hook::Hook;
use crate::thread::Thread;
use core::sync::atomic::Ordering::{Relaxed, SeqCst};
use core::sync::atomic::{AtomicBool, AtomicU64};
use tare_hook_segment::{EventRing, RINGS};
use tare_shm::memory;

static IS_SHRUNK: AtomicBool = AtomicBool::new(false);
/// A bit for each ring that a thread of this process has had.
static KEPT: [AtomicU64; RINGS / 64] = [const { AtomicU64::new(0) }; RINGS / 64];

/// Whether rings that no thread has are not mapped.
pub fn is_shrunk() -> bool {
    IS_SHRUNK.load(Relaxed)
}

/// Whether this ring is mapped, and stays so.
pub fn keep(place: usize) -> bool {
    KEPT[place / 64].fetch_or(1 << (place % 64), SeqCst);
    !IS_SHRUNK.load(SeqCst)
}

/// To be called before the program's own call.
pub fn shrink() {
    let Some(hook) = Hook::get() else { return };
    if Thread::get().is_borrowed() || IS_SHRUNK.swap(true, SeqCst) {
        return;
    }
    let kept = |place: usize| KEPT[place / 64].load(SeqCst) & 1 << (place % 64) != 0;
    let first = (&raw const hook.shared.rings).addr();
    let end = |place: usize| first + place * size_of::<EventRing>();
    let mut place = 0;
    while place < RINGS {
        let from = place;
        while place < RINGS && !kept(place) {
            place += 1;
        }
        if from < place {
            // SAFETY: no thread has one of these rings, or gets one any more.
            unsafe { memory::unmap_pages(end(from), end(place)) };
        }
        place += 1;
    }
}
