// SPDX-License-Identifier: Apache-2.0
//! What holds for a link only as long as no other process has this end, too.

use crate::kernel;
use crate::links::liveness;
use crate::links::slots::Slot;
use core::ffi::c_int;
use core::sync::atomic::Ordering::{Acquire, Relaxed};
use tare_link_segment::Holders;

impl Slot {
    pub fn holders(&self) -> Option<&'static Holders> {
        self.mapping().link.holders()
    }

    /// Whether another process may have this end of the connection, too. A program that a child has
    /// started has at most connections that the child gave back to TCP.
    pub fn is_shared(&self) -> bool {
        let generation = liveness::fork_generation();
        self.exclusive_since.load(Relaxed) != generation && !self.becomes_exclusive(generation)
    }

    #[cold]
    #[inline(never)]
    fn becomes_exclusive(&self, generation: u64) -> bool {
        if !liveness::is_check_due(&self.checked_at)
            || self.mapping().incoming.is_left()
            || liveness::may_be_shared(self.holders(), self.process.load(Relaxed))
        {
            return false;
        }
        // Others may have changed them.
        self.blocking_mode.store(0, Relaxed);
        self.is_added.store(2, Relaxed);
        self.exclusive_since.store(generation, Relaxed);
        true
    }

    /// Before a fork. What the service thread alone has, it ends alone.
    pub fn share_with_child(&self, own: u64, child: u64) {
        if let Some(holders) = self.holders() {
            holders.add(own, liveness::is_alive);
            if self.is_closed.load(Acquire) == 0 {
                holders.add(child, liveness::is_alive);
            }
        }
    }

    /// This process is about to close its last descriptor of the connection: whether no other one
    /// has it.
    pub fn release_end(&self) -> bool {
        let own = liveness::own_number();
        if own != 0 {
            self.holders().into_iter().for_each(|holders| holders.remove(own));
        }
        self.recheck_sharing();
        !self.is_shared()
    }

    /// Lets `is_shared` be answered as of now, before something that cannot be taken back.
    pub fn recheck_sharing(&self) {
        self.checked_at.store(0, Relaxed);
    }

    /// Whether calls on the connection return at once (O_NONBLOCK). Other processes that share it
    /// can change that unseen.
    pub fn is_nonblocking(&self, fd: c_int) -> bool {
        const BLOCKING: u32 = 1;
        const NONBLOCKING: u32 = 2;
        let known = if self.is_shared() { 0 } else { self.blocking_mode.load(Relaxed) };
        if known != 0 {
            return known == NONBLOCKING;
        }
        let returns = kernel::is_nonblocking(fd);
        self.blocking_mode.store(if returns { NONBLOCKING } else { BLOCKING }, Relaxed);
        returns
    }

    /// While TCP has not accepted the backlog, and the other end receives through TCP alone, a program
    /// that is killed must not end the stream as if it were whole: the kernel resets the connection.
    pub fn guard(&self, fd: c_int) {
        if !self.is_shared() {
            self.guard.begin(fd);
        }
        self.mapping().outgoing.set_guarded();
    }
}
