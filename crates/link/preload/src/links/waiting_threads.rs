// SPDX-License-Identifier: Apache-2.0
use crate::{kernel, state};
use core::sync::atomic::AtomicU32;
use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed};

/// Threads that wait in a call for a link, as far as there is room for them: another one that closes
/// the descriptor keeps it for them. One that is cancelled never ends its wait.
#[derive(Debug)]
pub struct WaitingThreads([AtomicU32; 4]);

impl WaitingThreads {
    pub const fn new() -> Self {
        Self([const { AtomicU32::new(0) }; 4])
    }

    pub fn clear(&self) {
        self.0.iter().for_each(|place| place.store(0, Relaxed));
    }

    /// The calling thread begins to wait; false if there is no room.
    pub fn begin(&self) -> bool {
        let thread = state::thread_number();
        self.0.iter().any(|place| place.compare_exchange(0, thread, AcqRel, Relaxed).is_ok())
    }

    /// Once for each `begin`: a signal handler that waits, too, ends its own wait only.
    pub fn end(&self) {
        let thread = state::thread_number();
        let _ =
            self.0.iter().any(|place| place.compare_exchange(thread, 0, AcqRel, Relaxed).is_ok());
    }

    /// Whether another thread waits.
    pub fn has_others(&self) -> bool {
        let own = state::thread_number();
        let threads = self.0.iter().map(|place| place.load(Acquire));
        threads.filter(|thread| *thread != 0 && *thread != own).any(kernel::exists)
    }

    /// Forgets threads that do not exist any more; their number.
    pub fn take_cancelled(&self) -> u32 {
        let is_cancelled = |place: &&AtomicU32| {
            let thread = place.load(Acquire);
            thread != 0
                && !kernel::exists(thread)
                && place.compare_exchange(thread, 0, AcqRel, Relaxed).is_ok()
        };
        self.0.iter().filter(is_cancelled).count() as u32
    }
}
