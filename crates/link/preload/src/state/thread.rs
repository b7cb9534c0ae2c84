// SPDX-License-Identifier: Apache-2.0
use tare_interpose::{ThreadBlock, ThreadState};

pub type Thread = ThreadBlock<State>;

/// Nothing is kept of a thread but its number.
#[derive(Debug)]
pub struct State;

// SAFETY: no bytes.
unsafe impl ThreadState for State {
    fn forked(&self) {}
}
