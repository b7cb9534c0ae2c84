// SPDX-License-Identifier: Apache-2.0
//! What holds for a link only as long as no other process has this end, too.

use crate::links::children;
use crate::links::slots::Slot;
use crate::{kernel, state};
use core::ffi::c_int;
use core::sync::atomic::Ordering::Relaxed;

impl Slot {
    /// Whether another process may have this end of the connection, too. One that a child has started
    /// has at most connections that the child gave back to TCP.
    pub fn is_shared(&self) -> bool {
        let forks = self.forks.load(Relaxed);
        forks != state::forks()
            && (self.parts().incoming.is_left() || children::has_forked_since(forks))
            || self.process.load(Relaxed) != state::process_number()
    }

    /// Whether calls on the connection return at once (O_NONBLOCK). Other processes that share it
    /// can change that unseen.
    pub fn is_nonblocking(&self, fd: c_int) -> bool {
        const WAITS: u32 = 1;
        const RETURNS: u32 = 2;
        let known = if self.is_shared() { 0 } else { self.waiting.load(Relaxed) };
        if known != 0 {
            return known == RETURNS;
        }
        let returns = kernel::is_nonblocking(fd);
        self.waiting.store(if returns { RETURNS } else { WAITS }, Relaxed);
        returns
    }

    /// While TCP has not accepted the backlog, a program that is killed must not end the stream as
    /// if it were whole: the kernel resets the connection.
    pub fn guard(&self, fd: c_int) {
        if !self.is_shared() {
            self.guard.begin(fd);
        }
    }
}
