// SPDX-License-Identifier: Apache-2.0
//! The ticks that a call spends before the real one. Where that is a look at the descriptor,
//! two readings of the counter take longer than what lies between them: so only some calls
//! are timed, and the others count as the last of the thread that was.

use crate::thread::Thread;
use core::sync::atomic::Ordering::Relaxed;
use tare_clock::ticks;
use tare_hook_segment::Direction;

/// Between two timed calls of a thread there are fewer than this, by chance: no rhythm of
/// the program's own meets always the same calls.
const FEWER: u32 = 32;

/// A reading above this was interrupted, and is that one call's alone.
const INTERRUPTED: u64 = 1 << 13;

pub struct Before {
    block: &'static Thread,
    direction: Direction,
    /// The counter at the beginning, of a call that is timed.
    start: Option<u64>,
}

impl Before {
    /// What goes out may be searched before it goes, and is timed always.
    #[inline(always)]
    pub fn begin(block: &'static Thread, direction: Direction) -> Self {
        let left = block.state.untimed.load(Relaxed);
        if direction == Direction::In && left > 0 {
            block.state.untimed.store(left - 1, Relaxed);
            return Self { block, direction, start: None };
        }
        Self { block, direction, start: Some(ticks()) }
    }

    /// The ticks since, or those of the last call that was timed.
    #[inline(always)]
    pub fn end(&self) -> u64 {
        let Some(start) = self.start else { return self.block.state.before.load(Relaxed).into() };
        let now = ticks();
        let spent = now.wrapping_sub(start);
        if self.direction == Direction::In {
            if spent <= INTERRUPTED {
                self.block.state.before.store(spent as u32, Relaxed);
            }
            self.block.state.untimed.store(gap(now), Relaxed);
        }
        spent
    }
}

/// A number below `FEWER` by chance: the counter's low bits, mixed (the multiplier is 2^32
/// over the golden ratio), for not every processor counts in ones.
#[inline]
fn gap(now: u64) -> u32 {
    (now as u32).wrapping_mul(0x9e37_79b9) >> (32 - FEWER.ilog2())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_calls_between_count_as_the_last_that_was_timed() {
        let block = Thread::get();
        block.state.untimed.store(0, Relaxed);
        let (mut timed, mut last, mut since) = (0, 0, 0);
        for _ in 0..10_000 {
            let before = Before::begin(block, Direction::In);
            let spent = before.end();
            if before.start.is_some() {
                (timed, since) = (timed + 1, 0);
                last = if spent <= INTERRUPTED { spent } else { last };
            } else {
                since += 1;
                assert_eq!(spent, last);
            }
            assert!(since < FEWER);
        }
        // One of FEWER / 2 on average.
        assert!((10_000 / FEWER..1_600).contains(&timed), "{timed}");
    }

    #[test]
    fn every_call_that_sends_is_timed_and_tells_nothing_of_others() {
        let block = Thread::get();
        block.state.untimed.store(7, Relaxed);
        let before = Before::begin(block, Direction::Out);
        assert!(before.start.is_some());
        before.end();
        assert_eq!(block.state.untimed.load(Relaxed), 7);
    }

    #[test]
    fn gaps_are_of_every_length_whatever_the_counter_counts_in() {
        for step in [1, 2, 26, 100, 1 << 10] {
            let mut seen = [false; FEWER as usize];
            (0..2_000u64).for_each(|number| seen[gap(number * step) as usize] = true);
            assert!(seen.iter().all(|seen| *seen), "{step}");
        }
    }
}
