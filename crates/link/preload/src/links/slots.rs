// SPDX-License-Identifier: Apache-2.0
//! The links of this process.

use crate::links::slot_allocation;

pub use crate::links::memory::link_mapping::{DirectionIndex, LinkMapping, ring_iovecs};
pub use crate::links::slot::{DELIVERED, ENDED, ENDS, Slot};
use core::ffi::c_int;
use core::sync::atomic::AtomicU32;
use core::sync::atomic::Ordering::Relaxed;
use tare_shm::memory;

/// Links that a process can have at a time.
const COUNT: usize = 12 << 10;
/// With this number of them, further rings do not grow: each size of a ring is a mapping, of which a
/// process has at most 65,530 (vm.max_map_count).
const MAX_GROWING: u32 = 2 << 10;
/// Links of a program with a limited address space: 13 MiB.
const MAX_WITH_LIMITED_MEMORY: u32 = 100;

static SLOTS: [Slot; COUNT] = [const { Slot::new() }; COUNT];
/// No slot beyond was ever used.
static HIGHEST: AtomicU32 = AtomicU32::new(0);

/// Puts a link into a slot, for its maker, who is its first user.
pub fn add(mapping: LinkMapping, fd: c_int, eventfds: [c_int; 2]) -> Option<u32> {
    let first = slot_allocation::lowest_free() as usize;
    let mut places = (first..COUNT).chain(0..first.min(COUNT));
    let place = places.find(|place| SLOTS[*place].take())?;
    SLOTS[place].fill(place as u32, mapping, fd, eventfds);
    slot_allocation::allocated(place as u32);
    HIGHEST.fetch_max(place as u32 + 1, Relaxed);
    Some(place as u32)
}

/// The link in a slot, for one more user, who must `leave` it.
pub fn enter(place: u32) -> Option<&'static Slot> {
    SLOTS.get(place as usize)?.enter()
}

pub fn any() -> bool {
    slot_allocation::link_count() > 0
}

/// Whether the rings of further links stay small.
pub fn must_stay_small() -> bool {
    slot_allocation::link_count() >= MAX_GROWING
}

/// Whether the program keeps its memory (RLIMIT_AS) with one more link, which is mapped already.
pub fn have_address_space() -> bool {
    !memory::is_limited()
        || (slot_allocation::link_count() < MAX_WITH_LIMITED_MEMORY && memory::has_room(0))
}

/// Does something with every link.
pub fn each(mut what: impl FnMut(&'static Slot)) {
    for slot in SLOTS.iter().take(HIGHEST.load(Relaxed) as usize) {
        if slot.is_used()
            && let Some(slot) = slot.enter()
        {
            what(slot);
            slot.leave();
        }
    }
}

/// The link that `add` has put there, whose first user calls.
pub fn first(place: u32) -> Option<&'static Slot> {
    SLOTS.get(place as usize)
}
