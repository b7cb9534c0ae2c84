// SPDX-License-Identifier: Apache-2.0
//! The ticks that a call spends in the hook. Where that is a look at the descriptor, the readings of
//! the counter take longer than what lies between them: so only some calls are timed, and the others
//! count as the last of the thread that was.

use crate::thread::Thread;
use core::sync::atomic::Ordering::Relaxed;
use tare_clock::ticks;
use tare_hook_segment::{Direction, Symbol};

/// Between two timed calls of a thread there are fewer than this, by chance: no rhythm of
/// the program's own meets always the same calls.
const FEWER: u32 = 32;

/// A reading above this was interrupted, and is that one call's alone.
const INTERRUPTED: u64 = 1 << 13;

/// Own time of a call that is being made.
pub struct OwnTime {
    block: &'static Thread,
    symbol: Symbol,
    part: Part,
    /// The counter at the beginning, of a call that is timed.
    start: Option<u64>,
}

/// What of a call need not be timed each time.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    /// A search before the real call and one after it.
    Nothing,
    /// A look at the descriptor before the real call, and a search after it.
    Before,
    /// A look at the descriptor: no rule wants what goes this way.
    All,
}

impl OwnTime {
    /// `is_searched`: some rule is for this direction.
    #[inline(always)]
    pub fn begin(
        block: &'static Thread,
        symbol: Symbol,
        direction: Direction,
        is_searched: bool,
    ) -> Self {
        let part = match direction {
            _ if !is_searched => Part::All,
            Direction::In => Part::Before,
            Direction::Out => Part::Nothing,
        };
        let left = block.state.untimed.load(Relaxed);
        let is_known = match part {
            Part::Nothing => false,
            Part::Before => true,
            Part::All => block.state.last(symbol) != 0,
        };
        if is_known && left > 0 {
            block.state.untimed.store(left - 1, Relaxed);
            return Self { block, symbol, part, start: None };
        }
        Self { block, symbol, part, start: Some(ticks()) }
    }

    /// The ticks since `begin`; of a call that is not timed, those of the last timed call.
    #[inline(always)]
    pub fn before_call(&self) -> u64 {
        let Some(start) = self.start else {
            return match self.part {
                Part::All => self.block.state.last(self.symbol).into(),
                _ => self.block.state.before.load(Relaxed).into(),
            };
        };
        let now = ticks();
        let spent = now.wrapping_sub(start);
        if self.part == Part::Before {
            if spent <= INTERRUPTED {
                self.block.state.before.store(spent as u32, Relaxed);
            }
            self.block.state.untimed.store(gap(now), Relaxed);
        }
        spent
    }

    /// The counter where the real call has returned, if the rest is timed.
    #[inline(always)]
    pub fn resume(&self) -> Option<u64> {
        (self.start.is_some() || self.part != Part::All).then(ticks)
    }

    /// All ticks of a call that has spent `before` of them before the real one.
    #[inline(always)]
    pub fn end(&self, before: u64, resumed: Option<u64>) -> u64 {
        let Some(resumed) = resumed else { return before };
        let now = ticks();
        let spent = before.wrapping_add(now.wrapping_sub(resumed));
        if self.part == Part::All {
            if spent <= INTERRUPTED {
                self.block.state.set_last(self.symbol, spent as u32);
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

    /// Its part before the real call, and whether that was timed.
    fn before(direction: Direction, is_searched: bool) -> (u64, bool) {
        let own_time = OwnTime::begin(Thread::get(), Symbol::read, direction, is_searched);
        let before = own_time.before_call();
        own_time.end(before, own_time.resume());
        (before, own_time.start.is_some())
    }

    #[test]
    fn the_calls_between_count_as_the_last_that_was_timed() {
        let block = Thread::get();
        block.state.untimed.store(0, Relaxed);
        let (mut timed, mut last, mut since) = (0, 0, 0);
        for _ in 0..10_000 {
            let (spent, is_timed) = before(Direction::In, true);
            if is_timed {
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
    fn the_search_after_a_read_is_timed_always() {
        let block = Thread::get();
        block.state.untimed.store(7, Relaxed);
        let own_time = OwnTime::begin(block, Symbol::read, Direction::In, true);
        assert!(own_time.start.is_none() && own_time.resume().is_some());
    }

    #[test]
    fn every_call_that_sends_what_is_searched_is_timed_and_tells_nothing_of_others() {
        let block = Thread::get();
        block.state.untimed.store(7, Relaxed);
        assert!(before(Direction::Out, true).1);
        assert_eq!(block.state.untimed.load(Relaxed), 7);
    }

    #[test]
    fn calls_that_no_rule_wants_count_as_the_last_of_the_same_function() {
        let block = Thread::get();
        for symbol in [Symbol::writev, Symbol::sendfile64] {
            block.state.untimed.store(20, Relaxed);
            let first = OwnTime::begin(block, symbol, Direction::Out, false);
            assert!(first.start.is_some(), "nothing is known of it");
            block.state.set_last(symbol, symbol as u32 + 100);
        }
        block.state.untimed.store(20, Relaxed);
        for symbol in [Symbol::writev, Symbol::sendfile64, Symbol::writev] {
            let call = OwnTime::begin(block, symbol, Direction::Out, false);
            let spent = call.before_call();
            assert_eq!((spent, call.resume()), (symbol as u64 + 100, None));
            assert_eq!(call.end(spent, None), spent);
        }
        assert_eq!(block.state.untimed.load(Relaxed), 17);
    }

    #[test]
    fn one_that_was_interrupted_is_not_carried_on() {
        let block = Thread::get();
        block.state.untimed.store(0, Relaxed);
        let call = OwnTime::begin(block, Symbol::send, Direction::Out, false);
        let before = call.before_call();
        assert!(call.end(before + INTERRUPTED, call.resume()) > INTERRUPTED);
        assert_eq!(block.state.last(Symbol::send), 0);
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
