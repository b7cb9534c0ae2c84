// SPDX-License-Identifier: Apache-2.0
use crate::links::slots::{DirectionIndex, Slot};
use crate::state::lock::{self, Held};

/// The lock of the sender of what this end sends, as `lock::take`. `None` if its thread waits for TCP,
/// in a signal handler: it may wait for what the calling thread does.
pub fn take(slot: &Slot) -> Option<Held> {
    loop {
        let held = lock::take_soon(slot.mapping().outgoing.sender_lock());
        if held.is_some() || slot.is_held_in_wait(DirectionIndex::Outgoing) {
            return held;
        }
    }
}
