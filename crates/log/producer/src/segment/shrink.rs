// SPDX-License-Identifier: Apache-2.0
//! The program limits its address space, or locks all of its memory: the library unmaps before what
//! no thread uses, and maps nothing more. Threads that have a ring keep it: the fast path writes
//! to it without asking.

use crate::segment::mapped::{CLOSED, PROCESS, RINGS, attached, ring_words, unmap};
use crate::segment::region::is_vfork_child;
use core::mem::offset_of;
use core::ptr;
use core::sync::atomic::Ordering::{Relaxed, SeqCst};
use core::sync::atomic::{AtomicBool, AtomicUsize};
use tare_log_segment::layout::{
    self, MAPPED_STATES, MAPPED_TABLES, MOST_RINGS, Process, STATES, Table,
};
use tare_shm::memory;

const PAGE: usize = 4096;
const TABLES: usize = offset_of!(Process, tables);
const STATES_AT: usize = offset_of!(Process, states);

/// Bytes that a program with a limited address space has mapped at most: what all threads share, and
/// as many rings as fit in, one at least.
const MOST: usize = 15 << 20;

/// Only these tables and `MAPPED_STATES` are mapped: what is between may be the program's by now.
static IS_SHRUNK: AtomicBool = AtomicBool::new(false);
static KEPT_TABLES: AtomicUsize = AtomicUsize::new(0);

/// How many threads can have a ring, for a process that has no segment yet.
pub fn most_rings(ring_words: usize) -> usize {
    let fitting = (MOST - TABLES) / (size_of::<Table>() + layout::ring_size(ring_words));
    if memory::is_limited() { fitting.clamp(1, MOST_RINGS) } else { MOST_RINGS }
}

/// Bytes at the beginning of the segment of such a process.
pub fn mapped(most_rings: usize) -> usize {
    let all = most_rings == MOST_RINGS;
    if all { size_of::<Process>() } else { TABLES + most_rings * size_of::<Table>() }
}

/// The segment is new, and so much of it is mapped.
pub fn begin(most_rings: usize) {
    if most_rings < MOST_RINGS {
        RINGS[most_rings..].iter().for_each(|ring| ring.store(CLOSED, SeqCst));
        KEPT_TABLES.store(most_rings, SeqCst);
        MAPPED_STATES.store(0, SeqCst);
        IS_SHRUNK.store(true, SeqCst);
    }
}

/// All of its memory is locked from now on, what is mapped later included.
pub fn lock_memory() {
    if !is_vfork_child() {
        memory::lock_new();
        shrink();
    }
}

/// The limit at address `limit` is to hold.
pub fn limit_address_space(limit: usize) {
    if !is_vfork_child() && !memory::leaves_room_under(limit) {
        shrink();
    }
}

fn shrink() {
    // SAFETY: null, or mapped.
    let Some(process) = (unsafe { PROCESS.load(Relaxed).as_ref() }) else { return };
    let is_first = !IS_SHRUNK.swap(true, SeqCst);
    let (tables, states) = if attached().is_some() {
        if !is_first {
            return;
        }
        for ring in &RINGS {
            let _ = ring.compare_exchange(ptr::null_mut(), CLOSED, SeqCst, Relaxed);
        }
        // Who takes words from now on gets none; those that are taken stay.
        let before = MAPPED_STATES.swap(0, SeqCst);
        let used = usize::try_from(process.states_used.load(SeqCst)).unwrap_or(before).min(before);
        // Of rings that are mapped, `MAPPED_TABLES` may not have the last one yet.
        let mapped = RINGS.iter().rposition(|ring| ring.load(SeqCst) != CLOSED);
        (mapped.map_or(0, |last| last + 1), (8 * used).next_multiple_of(PAGE) / 8)
    } else {
        // The child of a fork that has not logged: all of it is its parent's, and it needs the
        // names of channels alone.
        unmap_rings(CLOSED);
        if !is_first {
            return;
        }
        (0, 0)
    };
    MAPPED_STATES.store(states, SeqCst);
    KEPT_TABLES.store(tables, SeqCst);
    let base = ptr::from_ref(process).addr();
    // SAFETY: no thread uses these tables and words, or begins to.
    unsafe {
        memory::unmap_pages(base + tables_end(), base + STATES_AT);
        memory::unmap_pages(base + states_end(), base + size_of::<Process>());
    }
}

fn tables_end() -> usize {
    TABLES + KEPT_TABLES.load(SeqCst) * size_of::<Table>()
}

fn states_end() -> usize {
    STATES_AT + 8 * MAPPED_STATES.load(SeqCst)
}

/// Unmaps a segment with its rings that no thread uses, and begins anew.
pub fn unmap_all(process: &Process) {
    unmap_rings(ptr::null_mut());
    let base = ptr::from_ref(process).addr();
    if IS_SHRUNK.swap(false, SeqCst) {
        unmap(base, tables_end());
        unmap(base + STATES_AT, states_end() - STATES_AT);
    } else {
        unmap(base, size_of::<Process>());
    }
    MAPPED_TABLES.store(0, SeqCst);
    MAPPED_STATES.store(STATES, SeqCst);
}

fn unmap_rings(instead: *mut layout::RingHead) {
    let size = layout::ring_size(ring_words());
    for ring in &RINGS {
        let ring = ring.swap(instead, SeqCst);
        if !ring.is_null() && ring != CLOSED {
            unmap(ring.addr(), size);
        }
    }
}
