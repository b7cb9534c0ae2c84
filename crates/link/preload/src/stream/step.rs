// SPDX-License-Identifier: Apache-2.0
use tare_link_segment::Direction;
use tare_shm::syscall::Errno;

/// What one look at a connection gave.
pub enum Step {
    Got(usize),
    /// The ring is empty; the kernel was not asked.
    Empty,
    /// Nothing yet.
    Nothing,
    /// Another call has read what is behind the bytes that were got.
    Passed,
    /// The end of the stream.
    End,
    Failed(Errno),
}

/// Where the bytes of a call end. Those that it adds must be the next: another thread or a signal
/// handler may have read in between.
#[derive(Default)]
pub struct Place {
    pub position: u64,
    pub is_next: bool,
}

impl Place {
    pub fn is_passed(&self, incoming: &Direction) -> bool {
        self.is_next && incoming.position() != self.position
    }
}
