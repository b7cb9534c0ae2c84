// SPDX-License-Identifier: Apache-2.0
//! Which target has its turn, when, and for how long.

use super::request_limit::RequestLimit;
use crate::clock::Nanoseconds;
use std::sync::Arc;

/// A stretch of load on one target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Slice {
    /// From 0 over the measured window; `None` in the warm-up.
    pub number: Option<i32>,
    pub target: usize,
    pub users: usize,
    pub length: Nanoseconds,
    /// It follows the slice before it without a gap, requests under way included.
    pub continues: bool,
    /// Its requests are finished before it ends.
    pub drains: bool,
}

/// What became of a slice.
#[derive(Debug, Clone, Copy, Default)]
pub struct Done {
    pub start: Nanoseconds,
    /// Requests that ended in it, without those that failed.
    pub succeeded: u64,
    pub duration: Nanoseconds,
}

/// Decides about the next slice when the one before it has ended.
pub trait Schedule: Send {
    /// `last` is what became of the slice before; `None` ends the work.
    fn next(&mut self, now: Nanoseconds, last: Done) -> Option<Slice>;
}

/// Rounds in which every target has one slice, in random order: first the warm-up,
/// then the measured window. Both end with a round.
pub struct Rounds {
    plan: Plan,
    request_limit: Arc<RequestLimit>,
    order: Vec<usize>,
    /// Index in the order.
    at: usize,
    random: fastrand::Rng,
    /// Start of the warm-up or of the window: of its first slice, before which connections are made.
    started: Option<Nanoseconds>,
    /// Of the next slice, once the window began.
    number: Option<i32>,
    drained: bool,
}

/// What the rounds are made from; times in ns.
#[derive(Debug, Clone)]
pub struct Plan {
    pub targets: usize,
    pub users: usize,
    pub slice: Nanoseconds,
    pub warm_up: Nanoseconds,
    pub window: Nanoseconds,
    pub seed: u64,
}

impl Rounds {
    pub fn new(plan: Plan, request_limit: Arc<RequestLimit>) -> Self {
        Self {
            order: (0..plan.targets).collect(),
            at: 0,
            random: fastrand::Rng::with_seed(!plan.seed),
            started: None,
            number: None,
            drained: true,
            plan,
            request_limit,
        }
    }

    /// What is left of the warm-up or of the window.
    fn left(&self, now: Nanoseconds) -> Nanoseconds {
        let whole = if self.number.is_some() { self.plan.window } else { self.plan.warm_up };
        whole - (now - self.started.unwrap_or(now))
    }

    /// The order measured comes from the seed alone, however far the warm-up came.
    fn begin_window(&mut self, now: Nanoseconds) {
        self.started = Some(now);
        self.number = Some(0);
        self.order.sort_unstable();
        self.random = fastrand::Rng::with_seed(self.plan.seed);
    }

    /// Whether the warm-up, or the window once there is one, has ended. A lone target
    /// is drained in its last slice only; that one begins before it is decided about,
    /// and would leave a moment for another.
    fn is_over(&self, now: Nanoseconds) -> bool {
        let Some(number) = self.number else { return self.left(now) <= 0 };
        let drained_alone = self.plan.targets == 1 && self.drained;
        number > 0 && (self.left(now) <= 0 || drained_alone || self.request_limit.is_spent())
    }

    fn slice(&mut self, target: usize, length: Nanoseconds, drains: bool) -> Slice {
        let number = self.number;
        self.number = number.map(|number| number + 1);
        let continues = !std::mem::replace(&mut self.drained, drains);
        Slice { number, target, users: self.plan.users, length, continues, drains }
    }
}

impl Schedule for Rounds {
    fn next(&mut self, now: Nanoseconds, last: Done) -> Option<Slice> {
        self.started.get_or_insert(now);
        if self.number == Some(1) {
            self.started = Some(last.start);
        }
        if self.at == 0 {
            let over = self.is_over(now);
            if over && !self.drained {
                // It sends nothing: it waits for what is under way.
                return Some(self.slice(0, 0, true));
            }
            match self.number {
                None if over => self.begin_window(now),
                Some(_) if over => return None,
                _ => {}
            }
            self.random.shuffle(&mut self.order);
        }
        let target = self.order[self.at];
        self.at = (self.at + 1) % self.plan.targets;
        // One target alone is under load without a gap: its slices only cut the time.
        let alone = self.plan.targets == 1;
        let left = self.left(now);
        let length = if alone { self.plan.slice.min(left) } else { self.plan.slice };
        Some(self.slice(target, length, !alone || left <= self.plan.slice))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAN: Plan = Plan { targets: 3, users: 1, slice: 5, warm_up: 20, window: 100, seed: 7 };

    /// All slices when each lasts so long and completes its requests.
    fn slices(plan: &Plan, lasting: Nanoseconds) -> Vec<Slice> {
        let mut rounds = Rounds::new(plan.clone(), Arc::new(RequestLimit::unlimited()));
        let mut now = 1_000;
        let mut last = Done::default();
        std::iter::from_fn(|| {
            let slice = rounds.next(now, last);
            last.start = now;
            now += lasting.min(slice.map_or(0, |slice| slice.length + lasting - plan.slice));
            slice
        })
        .collect()
    }

    fn measured(slices: &[Slice]) -> Vec<usize> {
        slices.iter().filter(|slice| slice.number.is_some()).map(|slice| slice.target).collect()
    }

    #[test]
    fn every_round_has_each_target_once() {
        let order = measured(&slices(&PLAN, 5));
        assert_eq!(order.len(), 21);
        for round in order.chunks(3) {
            let mut round = round.to_vec();
            round.sort_unstable();
            assert_eq!(round, [0, 1, 2]);
        }
        assert!(order.chunks(3).any(|round| round != [0, 1, 2]));
    }

    #[test]
    fn the_seed_alone_gives_the_order() {
        let order = measured(&slices(&PLAN, 5));
        assert_eq!(measured(&slices(&Plan { warm_up: 333, ..PLAN }, 5)), order);
        assert_ne!(measured(&slices(&Plan { seed: 8, ..PLAN }, 5)), order);
    }

    #[test]
    fn slices_are_numbered_from_zero_after_the_warm_up() {
        let all = slices(&PLAN, 5);
        let numbers: Vec<_> = all.iter().map(|slice| slice.number).collect();
        let warm = numbers.iter().take_while(|number| number.is_none()).count();
        assert_eq!(warm, 6);
        assert!(numbers[warm..].iter().copied().eq((0..21).map(Some)));
        assert!(all.iter().all(|slice| slice.drains && !slice.continues && slice.length == 5));
    }

    #[test]
    fn one_target_alone_is_drained_only_at_the_end_and_fills_the_window() {
        let all = slices(&Plan { targets: 1, slice: 30, ..PLAN }, 30);
        let lengths: Vec<_> = all.iter().map(|slice| slice.length).collect();
        assert_eq!(lengths, [20, 30, 30, 30, 10]);
        let drains: Vec<_> = all.iter().map(|slice| slice.drains).collect();
        assert_eq!(drains, [true, false, false, false, true]);
        let continues: Vec<_> = all.iter().map(|slice| slice.continues).collect();
        assert_eq!(continues, [false, false, true, true, true]);
    }

    #[test]
    fn what_is_under_way_when_the_time_is_over_is_waited_for() {
        let plan = Plan { targets: 1, warm_up: 0, window: 8, ..PLAN };
        let mut rounds = Rounds::new(plan, Arc::new(RequestLimit::unlimited()));
        assert!(!rounds.next(0, Done::default()).unwrap().drains);
        let last = rounds.next(9, Done::default()).unwrap();
        assert_eq!((last.length, last.continues, last.drains), (0, true, true));
        assert_eq!(rounds.next(9, Done::default()), None);
    }

    #[test]
    fn a_slice_decided_about_late_is_the_last_all_the_same() {
        let plan = Plan { targets: 1, warm_up: 0, window: 8, ..PLAN };
        let mut rounds = Rounds::new(plan, Arc::new(RequestLimit::unlimited()));
        assert!(!rounds.next(0, Done::default()).unwrap().drains);
        let last = rounds.next(6, Done::default()).unwrap();
        assert_eq!((last.length, last.drains), (2, true));
        // It continued the first, so it ended at 5 + 2.
        assert_eq!(rounds.next(7, Done::default()), None);
    }

    #[test]
    fn the_window_counts_from_its_first_slice() {
        let plan = Plan { targets: 1, warm_up: 0, window: 8, ..PLAN };
        let mut rounds = Rounds::new(plan, Arc::new(RequestLimit::unlimited()));
        assert_eq!(rounds.next(0, Done::default()).unwrap().length, 5);
        let connected = Done { start: 100, ..Done::default() };
        let last = rounds.next(105, connected).unwrap();
        assert_eq!((last.length, last.drains), (3, true));
    }

    #[test]
    fn a_spent_limit_ends_the_work_after_its_round() {
        let request_limit = Arc::new(RequestLimit::each(1, 3));
        let mut rounds = Rounds::new(Plan { warm_up: 0, ..PLAN }, request_limit.clone());
        let mut slices = 0;
        while let Some(slice) = rounds.next(0, Done::default()) {
            slices += 1;
            request_limit.take(slice.target);
        }
        assert_eq!(slices, 3);
    }
}
