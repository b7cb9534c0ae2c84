// SPDX-License-Identifier: Apache-2.0
use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, SeqCst};
#[cfg(not(loom))]
use core::sync::atomic::{AtomicU32, fence};
#[cfg(loom)]
use loom::sync::atomic::{AtomicU32, fence};

/// Whether the receiver of a direction is to be woken by its eventfd. All zero is an awake one.
///
/// The receiver arms the doorbell where it finds the ring empty, looks once more, and sleeps. The
/// sender publishes bytes and rings. One of the two sees what the other did. Once armed, the doorbell
/// stays so until it is rung, so that it also wakes who sleeps in an epoll set.
#[repr(C)]
#[derive(Debug, Default)]
pub struct Doorbell {
    state: AtomicU32,
    /// Times that it was rung.
    #[cfg(not(loom))]
    rings: AtomicU32,
}

impl Doorbell {
    const AWAKE: u32 = 0;
    const ARMED: u32 = 1;
    /// The sender adds to the eventfd, or has done so: the receiver must read it.
    const RUNG: u32 = 2;

    /// For the receiver: whether the eventfd has to be read before the doorbell is armed again.
    pub fn is_rung(&self) -> bool {
        self.state.load(Acquire) == Self::RUNG
    }

    /// Before the receiver's last look at the ring. Not while the doorbell is rung.
    pub fn arm(&self) {
        self.state.store(Self::ARMED, Relaxed);
        fence(SeqCst);
    }

    /// The receiver looks at the ring by itself: nothing need ring. False if it was rung.
    pub fn disarm(&self) -> bool {
        match self.state.compare_exchange(Self::ARMED, Self::AWAKE, AcqRel, Acquire) {
            Ok(_) => true,
            Err(state) => state != Self::RUNG,
        }
    }

    /// For the sender, after bytes were published: whether it has to add to the eventfd.
    pub fn ring(&self) -> bool {
        fence(SeqCst);
        let is_due = self.state.load(Relaxed) == Self::ARMED
            && self.state.compare_exchange(Self::ARMED, Self::RUNG, AcqRel, Relaxed).is_ok();
        #[cfg(not(loom))]
        if is_due {
            self.rings.fetch_add(1, Relaxed);
        }
        is_due
    }

    /// Times that it was rung.
    #[cfg(not(loom))]
    pub fn rings(&self) -> u64 {
        self.rings.load(Relaxed).into()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn an_armed_doorbell_rings_once() {
        let doorbell = Doorbell::default();
        assert!(!doorbell.ring() && !doorbell.is_rung());
        doorbell.arm();
        assert!(doorbell.ring() && doorbell.is_rung() && !doorbell.ring() && !doorbell.disarm());
        doorbell.arm();
        assert!(doorbell.disarm() && doorbell.disarm() && !doorbell.ring());
    }
}
