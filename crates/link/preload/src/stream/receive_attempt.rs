// SPDX-License-Identifier: Apache-2.0
use tare_link_segment::Direction;
use tare_shm::syscall::Errno;

/// What one attempt to receive gave.
pub enum ReceiveAttempt {
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
pub struct ReadPosition {
    pub position: u64,
    pub is_next: bool,
}

impl ReadPosition {
    pub fn is_passed(&self, incoming: &Direction) -> bool {
        self.is_next && incoming.position() != self.position
    }
}
