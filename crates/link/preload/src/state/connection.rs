// SPDX-License-Identifier: Apache-2.0
use crate::kernel;
use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use core::sync::atomic::{AtomicU32, AtomicU64};

/// What is known of a TCP connection of the program. All zero is a new one.
#[derive(Debug, Default)]
pub struct Connection {
    stage: AtomicU32,
    /// Threads in calls of the kernel that move bytes or wait, or `HELD`, or `LINKED`.
    busy: AtomicU32,
    /// While the connection is TCP's alone: calls that sent, whether the last call received, and the
    /// bytes of all.
    pub sends: AtomicU32,
    pub has_received: AtomicU32,
    pub bytes: AtomicU64,
    /// Not 0: another program may use it, too, or has used it.
    pub is_found: AtomicU32,
    /// Not 0: this end is the server's, which has accepted it.
    pub is_accepted: AtomicU32,
    /// Not 0: it has an option that the library cannot imitate.
    pub is_special: AtomicU32,
    /// Not 0: its server was absent lately, when that was asked.
    pub is_absent: AtomicU32,
    /// Why it stays TCP, if that was known before it had another end.
    pub reason: AtomicU32,
    /// Forks when it was first seen.
    pub forks: AtomicU32,
    /// While it waits: the socket on which the other end may come, and looks at it.
    pub listener: AtomicU32,
    pub looks: AtomicU32,
    /// While it is linked: its place among the slots.
    pub slot: AtomicU32,
    /// Its epoll sets.
    pub sets: [Registration; 2],
}

/// An epoll set that a connection is in.
#[derive(Debug, Default)]
pub struct Registration {
    /// The set as `sets` names it, 0 for none.
    pub set: AtomicU64,
    pub fd: AtomicU32,
    pub events: AtomicU32,
    pub data: AtomicU64,
}

/// Where a connection is on its way to a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Stage {
    New = 0,
    /// A thread changes the stage.
    Changing = 1,
    /// This end waits for the other one.
    Waiting = 2,
    Linked = 3,
    /// It stays TCP.
    Never = 4,
}

const LINKED: u32 = 1 << 31;
const HELD: u32 = 1 << 30;

impl Connection {
    pub fn stage(&self) -> Stage {
        match self.stage.load(Acquire) {
            0 => Stage::New,
            1 => Stage::Changing,
            2 => Stage::Waiting,
            3 => Stage::Linked,
            _ => Stage::Never,
        }
    }

    pub fn set_stage(&self, stage: Stage) {
        self.stage.store(stage as u32, Release);
    }

    pub fn change_stage(&self, from: Stage, to: Stage) -> bool {
        self.stage.compare_exchange(from as u32, to as u32, AcqRel, Relaxed).is_ok()
    }

    /// A call of the kernel begins; false if the connection is linked.
    pub fn begin(&self) -> bool {
        loop {
            let busy = self.busy.load(Acquire);
            if busy & LINKED != 0 {
                return false;
            }
            if busy & HELD != 0 {
                kernel::yield_now();
            } else if self.busy.compare_exchange(busy, busy + 1, AcqRel, Relaxed).is_ok() {
                return true;
            }
        }
    }

    /// Keeps the connection as it is until `end`. False if it is linked, or stays TCP for good.
    pub fn keep(&self) -> bool {
        loop {
            match self.stage() {
                Stage::Linked | Stage::Never => return false,
                _ if self.begin() => return true,
                // It has just been linked, and says so at once.
                _ => kernel::yield_now(),
            }
        }
    }

    pub fn end(&self) {
        let fewer =
            |busy: u32| (busy & (LINKED | HELD) == 0).then(|| busy.checked_sub(1)).flatten();
        let _ = self.busy.fetch_update(AcqRel, Relaxed, fewer);
    }

    /// Keeps others out of calls of the kernel, if none is in one.
    pub fn hold(&self) -> bool {
        self.busy.compare_exchange(0, HELD, AcqRel, Relaxed).is_ok()
    }

    /// In the child of a fork: the thread that was about to link it is in the parent.
    pub fn forked(&self) {
        if self.stage() == Stage::Changing {
            self.set_stage(Stage::Never);
            self.let_go(false);
        }
    }

    pub fn let_go(&self, linked: bool) {
        self.busy.store(if linked { LINKED } else { 0 }, Release);
    }
}

// SAFETY: atomics only.
unsafe impl tare_interpose::Connection for Connection {
    fn reset(&self) {
        for word in [
            &self.stage,
            &self.busy,
            &self.sends,
            &self.has_received,
            &self.is_found,
            &self.is_accepted,
            &self.is_special,
            &self.is_absent,
            &self.reason,
            &self.forks,
            &self.listener,
            &self.looks,
            &self.slot,
        ] {
            word.store(0, Relaxed);
        }
        self.bytes.store(0, Relaxed);
        self.sets.iter().for_each(|set| set.set.store(0, Relaxed));
    }

    fn found(&self) {
        self.is_found.store(1, Relaxed);
    }
}
