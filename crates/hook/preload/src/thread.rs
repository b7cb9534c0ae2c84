// SPDX-License-Identifier: Apache-2.0
use core::sync::atomic::AtomicU32;
use core::sync::atomic::Ordering::Relaxed;
use tare_hook_segment::Symbol;
use tare_interpose::{ThreadBlock, ThreadState};

pub type Thread = ThreadBlock<State>;

/// What the hook keeps of a thread.
#[derive(Debug)]
pub struct State {
    /// 1 + the place of the ring that the thread owns, 0 for none.
    pub claim: AtomicU32,
    /// Ticks that the last call that was timed spent before the real call.
    pub before: AtomicU32,
    /// Calls until the next that is timed.
    pub untimed: AtomicU32,
    /// By function, modulo their number: its number and the ticks of its last call that was timed, of
    /// those whose bytes no rule wants.
    unsearched: [AtomicU32; 4],
    /// Not 0 while the thread records, where it cannot hold signals.
    pub recording: AtomicU32,
    /// Not 0 while the thread searches, or if a signal handler left a search by a jump.
    pub searching: AtomicU32,
}

/// Bits of a word of `unsearched` that are ticks.
const TICKS: u32 = 24;

impl State {
    /// The ticks of the last call of this function that was timed, of those whose bytes no rule wants;
    /// 0 if that is not known.
    #[inline]
    pub fn last(&self, symbol: Symbol) -> u32 {
        let word = self.word(symbol).load(Relaxed);
        if word >> TICKS == symbol as u32 { word & ((1 << TICKS) - 1) } else { 0 }
    }

    #[inline]
    pub fn set_last(&self, symbol: Symbol, ticks: u32) {
        self.word(symbol).store((symbol as u32) << TICKS | ticks, Relaxed);
    }

    #[inline]
    fn word(&self, symbol: Symbol) -> &AtomicU32 {
        &self.unsearched[symbol as usize % self.unsearched.len()]
    }
}

// SAFETY: atomics only.
unsafe impl ThreadState for State {
    /// The ring is the parent's.
    fn forked(&self) {
        self.claim.store(0, Relaxed);
    }
}
