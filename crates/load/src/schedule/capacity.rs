// SPDX-License-Identifier: Apache-2.0
//! The search for the most that a service bears: users back to back, doubled until
//! that brings less than 5 % more, then a confirmation in short slices that alternate
//! between the numbers of users in question. Slices wait for the last of their answers: it
//! takes up to about 8 s where answers come at once, and some 25 times as long as an answer
//! where they are slow.

use super::slices::{Done, Schedule, Slice};
use crate::clock::Nanoseconds;
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, OnceLock};

pub const MOST_USERS: usize = 1024;
const GROWTH: f64 = 1.05;
/// Doublings in a row that have to bring too little: one may be the machine's noise.
const FLAT: usize = 2;
const STEP_SLICES: usize = 4;
const STEP_SLICE: Nanoseconds = 100_000_000;
/// A step has no further slice, and the confirmation no further round, after so long.
const STEP_TIME: Nanoseconds = STEP_SLICES as Nanoseconds * STEP_SLICE;
const CONFIRMING_TIME: Nanoseconds = 2_500_000_000;
const ROUNDS: usize = 40;
const ROUND_SLICE: Nanoseconds = 20_000_000;

/// What a service bears.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Capacity {
    /// Successful requests a second.
    pub rate: f64,
    /// The fewest users that reach it, to 5 %.
    pub users: usize,
}

pub struct Search {
    found: Arc<OnceLock<Capacity>>,
    /// Numbers of users of the slices to come.
    queue: VecDeque<usize>,
    running: Option<usize>,
    /// Of the next slice.
    number: i32,
    /// Time that the step, or the confirmation, has taken.
    spent: Nanoseconds,
    /// The most users to try.
    most: usize,
    tallies: BTreeMap<usize, Tally>,
    /// So many slices make a round of the confirmation; 0 before it.
    round: usize,
    random: fastrand::Rng,
}

#[derive(Debug, Default, Clone, Copy)]
struct Tally {
    requests: u64,
    duration: Nanoseconds,
}

impl Search {
    /// The result stands in the second value once the schedule has ended, unless no request
    /// succeeded.
    pub fn new(seed: u64, most: usize) -> (Self, Arc<OnceLock<Capacity>>) {
        let found = Arc::new(OnceLock::new());
        let search = Self {
            found: found.clone(),
            queue: step(1),
            running: None,
            number: 0,
            spent: 0,
            most,
            tallies: BTreeMap::new(),
            round: 0,
            random: fastrand::Rng::with_seed(seed),
        };
        (search, found)
    }

    /// The next slices when the ones before are through; none at the end.
    fn plan(&mut self) {
        self.spent = 0;
        if self.round > 0 {
            let found = self.least_of_the_best();
            let _ = found.map(|found| self.found.set(found));
            return;
        }
        let Some(users) = self.tallies.keys().next_back().copied() else { return };
        if !self.is_flat() && users < self.most {
            self.queue = step((users * 2).min(self.most));
            return;
        }
        let Some(Capacity { users: least, .. }) = self.least_of_the_best() else { return };
        let mut candidates =
            [least / 2, least, least * 2].map(|users| users.clamp(1, self.most)).to_vec();
        candidates.dedup();
        for _ in 0..ROUNDS {
            self.random.shuffle(&mut candidates);
            self.queue.extend(&candidates);
        }
        self.tallies.clear();
        self.round = candidates.len();
    }

    /// Counts the slice that has ended, and leaves out those to come for which there is no time.
    fn count(&mut self, users: usize, last: Done) {
        self.spent += last.duration;
        let confirming = self.round > 0;
        if !confirming && self.queue.len() == STEP_SLICES - 1 {
            return;
        }
        let tally = self.tallies.entry(users).or_default();
        tally.requests += last.succeeded;
        tally.duration += last.duration;
        let allowed = if confirming { CONFIRMING_TIME } else { STEP_TIME };
        if self.spent >= allowed && self.queue.len().is_multiple_of(self.round.max(1)) {
            self.queue.clear();
        }
    }

    /// Whether the last doublings brought too little over what there was before them.
    fn is_flat(&self) -> bool {
        let rates: Vec<f64> = self.tallies.values().map(Tally::rate).collect();
        let Some(before) = rates.len().checked_sub(FLAT).filter(|before| *before > 0) else {
            return false;
        };
        let best = rates[..before].iter().copied().fold(0.0, f64::max);
        rates[before..].iter().all(|rate| *rate <= best * GROWTH)
    }

    /// `None` where no request succeeded.
    fn least_of_the_best(&self) -> Option<Capacity> {
        let best = self.tallies.values().map(Tally::rate).fold(0.0, f64::max);
        let good_enough = |rate: f64| rate > 0.0 && rate * GROWTH >= best;
        let (users, tally) = self.tallies.iter().find(|(_, tally)| good_enough(tally.rate()))?;
        Some(Capacity { rate: tally.rate(), users: *users })
    }
}

/// One step of the doubling; its first slice lets the service settle.
fn step(users: usize) -> VecDeque<usize> {
    VecDeque::from(vec![users; STEP_SLICES])
}

impl Tally {
    fn rate(&self) -> f64 {
        self.requests as f64 * 1e9 / self.duration.max(1) as f64
    }
}

impl Schedule for Search {
    fn next(&mut self, _now: Nanoseconds, last: Done) -> Option<Slice> {
        if let Some(users) = self.running {
            self.count(users, last);
        }
        if self.queue.is_empty() {
            self.plan();
        }
        self.running = self.queue.pop_front();
        let number = self.number;
        self.number += 1;
        self.running.map(|users| Slice {
            number: Some(number),
            target: 0,
            users,
            length: if self.round > 0 { ROUND_SLICE } else { STEP_SLICE },
            continues: false,
            drains: true,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The result for a service with such a rate by users, and how long it took, s.
    fn search(rate: impl Fn(usize, usize) -> f64) -> (Option<Capacity>, f64) {
        search_slowly(0.0, rate)
    }

    /// Where an answer takes so many seconds.
    fn search_slowly(answer: f64, rate: impl Fn(usize, usize) -> f64) -> (Option<Capacity>, f64) {
        let (mut search, found) = Search::new(1, MOST_USERS);
        let mut last = Done::default();
        let mut slices = 0;
        let mut passed = 0;
        while let Some(slice) = search.next(0, last) {
            let duration = slice.length.max((answer * 1e9) as Nanoseconds);
            let requests = rate(slice.users, slices) * duration as f64 / 1e9;
            last = Done { succeeded: requests as u64, duration, ..Done::default() };
            passed += duration;
            slices += 1;
        }
        (found.get().copied(), passed as f64 / 1e9)
    }

    #[test]
    fn the_fewest_users_that_reach_the_most_are_found() {
        let (found, _) = search(|users, _| 10_000.0 * (users as f64).min(8.0));
        assert_eq!(found, Some(Capacity { users: 8, rate: 80_000.0 }));
    }

    #[test]
    fn one_user_may_be_enough() {
        let (found, _) = search(|_, _| 5_000.0);
        assert_eq!(found, Some(Capacity { users: 1, rate: 5_000.0 }));
    }

    #[test]
    fn one_disturbed_step_does_not_end_the_search() {
        let disturbed = STEP_SLICES..2 * STEP_SLICES;
        let (found, _) = search(|users, slice| {
            let share = if disturbed.contains(&slice) { 0.5 } else { 1.0 };
            1_000.0 * (users as f64).min(16.0) * share
        });
        assert_eq!(found.unwrap().users, 16);
    }

    #[test]
    fn the_search_is_bounded_in_time() {
        let (found, seconds) = search(|users, _| 100.0 * users as f64);
        assert_eq!(found.unwrap().users, MOST_USERS);
        assert!(seconds < 8.0, "{seconds}");
        for answer in [0.5, 2.0, 60.0] {
            let (found, seconds) = search_slowly(answer, |users, _| users as f64 / answer);
            assert_eq!(found.unwrap().users, MOST_USERS);
            assert!(seconds < 30.0 * answer, "{answer} {seconds}");
        }
    }

    #[test]
    fn a_service_that_only_fails_has_none_and_is_not_asked_for_long() {
        let (found, seconds) = search(|_, _| 0.0);
        assert_eq!(found, None);
        assert!(seconds < 2.0, "{seconds}");
    }
}
