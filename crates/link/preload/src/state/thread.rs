// SPDX-License-Identifier: Apache-2.0
use core::sync::atomic::AtomicU32;
use tare_interpose::{ThreadBlock, ThreadState};

pub type Thread = ThreadBlock<State>;

/// What is kept of a thread, besides its number.
#[derive(Debug)]
pub struct State {
    /// The fork that it makes (`links::fork_handlers`), 0 for none: in the child, that which made it.
    pub fork: AtomicU32,
}

// SAFETY: one atomic.
unsafe impl ThreadState for State {
    fn forked(&self) {}
}
