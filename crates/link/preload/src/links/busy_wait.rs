// SPDX-License-Identifier: Apache-2.0
//! Short waits without sleep, while they pay: to wake a thread costs more than the answer of a peer
//! that runs takes.

use crate::{kernel, state};
use core::sync::atomic::Ordering::Relaxed;
use core::sync::atomic::{AtomicI32, AtomicU32};
use tare_link_segment::{Counter, Direction};
use tare_shm::syscall;

/// Microseconds of a wait: about what it takes to wake a thread on an idle CPU of a virtual machine.
const MOST: u64 = 50;
/// Times that a thread gives its CPU to a peer that waits for the same one.
const YIELDS: u32 = 8;
/// What a wait that paid adds to the score, and one that did not takes. A failed wait costs more
/// than a good one saves.
const GAIN: i32 = 1;
const LOSS: i32 = 4;
const BEST: i32 = 16;
/// While the score is 0, only every 2^n-th wait is tried.
const SELDOM: u32 = 4;
const NEVER: u32 = 12;

/// What the last waits of one kind have taught.
#[derive(Debug)]
pub struct Spin {
    score: AtomicI32,
    /// Waits since the score is 0, and how seldom they are tried.
    waits: AtomicU32,
    seldom: AtomicU32,
    /// Waits that paid and were not counted yet: the next wait has time for it.
    paid: AtomicU32,
}

impl Spin {
    /// Zeros, for a static variable that needs no place in the file.
    pub const fn new() -> Self {
        Self {
            score: AtomicI32::new(0),
            waits: AtomicU32::new(0),
            seldom: AtomicU32::new(0),
            paid: AtomicU32::new(0),
        }
    }

    /// Before the first wait: it is tried.
    pub fn begin(&self) {
        self.score.store(if never() { 0 } else { BEST }, Relaxed);
        self.seldom.store(SELDOM, Relaxed);
    }

    fn is_worth_it(&self) -> bool {
        if self.score.load(Relaxed) > 0 {
            return true;
        }
        if never() {
            return false;
        }
        let waits = self.waits.load(Relaxed).wrapping_add(1);
        self.waits.store(waits, Relaxed);
        waits.is_multiple_of(1 << self.seldom.load(Relaxed).min(NEVER))
    }

    fn learn(&self, paid: bool) {
        let score = self.score.load(Relaxed);
        if paid {
            self.score.store((score + GAIN).clamp(LOSS, BEST), Relaxed);
            self.seldom.store(SELDOM, Relaxed);
        } else if score > 0 {
            self.score.store((score - LOSS).max(0), Relaxed);
        } else {
            let seldom = self.seldom.load(Relaxed);
            self.seldom.store((seldom + 1).min(NEVER), Relaxed);
        }
    }

    fn succeeded(&self, paid: bool) {
        self.learn(paid);
        self.paid.store(self.paid.load(Relaxed).wrapping_add(1), Relaxed);
    }

    fn count_paid(&self, own: &Direction) {
        if self.paid.load(Relaxed) > 0 {
            let paid = self.paid.swap(0, Relaxed).into();
            own.count_spins(paid);
            state::count(Counter::Spins, paid);
        }
    }

    /// Waits until something is ready, for some microseconds; false if it is not. `own` is the
    /// direction that this end sends, `other` that which it receives.
    pub fn wait(&self, own: &Direction, other: &Direction, ready: &dyn Fn() -> bool) -> bool {
        self.count_paid(own);
        if !self.is_worth_it() {
            return false;
        }
        let cpu = cpu();
        own.set_cpu(cpu);
        let is_on_same_cpu = other.was_last_on(cpu);
        // Most answers come at once: the counter is not read for them.
        if !is_on_same_cpu && looks(ready) {
            self.succeeded(true);
            return true;
        }
        let start = ticks();
        let is_ready = if is_on_same_cpu { yields(start, ready) } else { spins(start, ready) };
        if is_ready {
            // Others may have had the CPU meanwhile.
            self.succeeded(ticks().wrapping_sub(start) <= MOST * ticks_per_microsecond());
        } else {
            self.learn(false);
            state::count(Counter::VainSpins, 1);
        }
        is_ready
    }
}

/// Whether the user wants every wait to sleep at once.
fn never() -> bool {
    state::statistics().is_some_and(|statistics| statistics.settings().never_spins())
}

/// Looks some times, for less than a microsecond or a few of them.
fn looks(ready: &dyn Fn() -> bool) -> bool {
    const TIMES: u32 = 32;
    for _ in 0..TIMES {
        if ready() {
            return true;
        }
        core::hint::spin_loop();
    }
    false
}

fn spins(start: u64, ready: &dyn Fn() -> bool) -> bool {
    let end = MOST * ticks_per_microsecond();
    // Bounded, whatever the counter does.
    for _ in 0..MOST * 100 {
        if looks(ready) {
            return true;
        }
        if ticks().wrapping_sub(start) > end {
            break;
        }
    }
    false
}

fn yields(start: u64, ready: &dyn Fn() -> bool) -> bool {
    let end = MOST * ticks_per_microsecond();
    for _ in 0..YIELDS {
        kernel::yield_now();
        if ready() {
            return true;
        }
        if ticks().wrapping_sub(start) > end {
            break;
        }
    }
    false
}

fn cpu() -> u32 {
    // SAFETY: no memory is touched.
    unsafe { libc::sched_getcpu() }.max(0) as u32
}

/// 0 once the program has restricted itself: it may have forbidden the counter, too.
#[cfg(target_arch = "x86_64")]
#[inline(never)]
pub fn ticks() -> u64 {
    if syscall::are_forbidden() {
        return 0;
    }
    // SAFETY: every x86-64 processor has it.
    unsafe { core::arch::x86_64::_rdtsc() }
}

/// The counter of x86-64 runs at 1 to 5 GHz: a wait is half to twice as long as it is named.
#[cfg(target_arch = "x86_64")]
pub fn ticks_per_microsecond() -> u64 {
    2500
}

#[cfg(target_arch = "aarch64")]
pub fn ticks() -> u64 {
    let ticks: u64;
    // SAFETY: programs may read the virtual counter.
    unsafe {
        core::arch::asm!("mrs {}, cntvct_el0", out(reg) ticks, options(nomem, nostack));
    }
    ticks
}

#[cfg(target_arch = "aarch64")]
pub fn ticks_per_microsecond() -> u64 {
    let frequency: u64;
    // SAFETY: programs may read the frequency of the virtual counter.
    unsafe {
        core::arch::asm!("mrs {}, cntfrq_el0", out(reg) frequency, options(nomem, nostack));
    }
    (frequency / 1_000_000).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_in_vain_become_seldom_and_one_that_pays_brings_them_back() {
        let spin = Spin::new();
        spin.begin();
        let (own, other) = (Direction::default(), Direction::default());
        let tried = |times: u32| {
            (0..times)
                .filter(|_| {
                    let worth = spin.is_worth_it();
                    if worth {
                        spin.learn(false);
                    }
                    worth
                })
                .count()
        };
        assert_eq!(tried(4), 4);
        assert_eq!(tried(15), 0);
        assert!(tried(1000) < 10);
        spin.learn(true);
        assert!(spin.wait(&own, &other, &|| true));
        assert!(!spin.wait(&own, &other, &|| false));
    }
}
