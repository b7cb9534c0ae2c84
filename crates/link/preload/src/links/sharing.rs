// SPDX-License-Identifier: Apache-2.0
//! What holds for a link only as long as no other process has this end, too.

use crate::kernel;
use crate::links::family;
use crate::links::slots::Slot;
use core::ffi::c_int;
use core::sync::atomic::Ordering::{Acquire, Relaxed};
use tare_link_segment::Holders;

impl Slot {
    pub fn holders(&self) -> Option<&'static Holders> {
        self.parts().link.holders()
    }

    /// Whether another process may have this end of the connection, too. A program that a child has
    /// started has at most connections that the child gave back to TCP.
    pub fn is_shared(&self) -> bool {
        let present = family::present();
        self.alone.load(Relaxed) != present && !self.becomes_alone(present)
    }

    #[cold]
    #[inline(never)]
    fn becomes_alone(&self, present: u64) -> bool {
        if !family::is_time_to_look(&self.looked)
            || self.parts().incoming.is_left()
            || family::have(self.holders(), self.process.load(Relaxed))
        {
            return false;
        }
        // Others may have changed them.
        self.waiting.store(0, Relaxed);
        self.is_added.store(2, Relaxed);
        self.alone.store(present, Relaxed);
        true
    }

    /// Before a fork. What the service thread alone has, it ends alone.
    pub fn is_shared_with(&self, own: u64, child: u64) {
        if let Some(holders) = self.holders() {
            holders.add(own, family::lives);
            if self.is_closed.load(Acquire) == 0 {
                holders.add(child, family::lives);
            }
        }
    }

    /// This process is about to close its last descriptor of the connection: whether no other one
    /// has it.
    pub fn is_last(&self) -> bool {
        let own = family::own();
        if own != 0 {
            self.holders().into_iter().for_each(|holders| holders.remove(own));
        }
        self.look_anew();
        !self.is_shared()
    }

    /// Lets `is_shared` be answered as of now, before something that cannot be taken back.
    pub fn look_anew(&self) {
        self.looked.store(0, Relaxed);
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

    /// While TCP has not accepted the backlog, and the other end receives through TCP alone, a program
    /// that is killed must not end the stream as if it were whole: the kernel resets the connection.
    pub fn guard(&self, fd: c_int) {
        if !self.is_shared() {
            self.guard.begin(fd);
        }
        self.parts().outgoing.guarded();
    }
}
