// SPDX-License-Identifier: Apache-2.0
//! Who sends the next request to a target, and when it should start.
//!
//! [`Arrivals`] counts the time that its target has load, which stands still between slices:
//! a rate holds within the slices, however many targets take turns. Starts and ends of slices
//! are the same for all threads, and nothing else moves that time: the threads' shares of
//! a rate stay in step, and a thread that is late at a border is seen to be late.

use crate::clock::Nanoseconds;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// When requests are sent.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Mode {
    Closed,
    /// All users together, requests a second.
    Constant {
        rate: f64,
    },
    Open {
        rate: f64,
    },
}

/// One request that is to be sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Turn {
    pub user: usize,
    /// When it should start, since the Unix epoch.
    pub intended: Nanoseconds,
    /// From when its user's next interval counts, in its target's own time.
    anchor: Nanoseconds,
}

/// What may be sent now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    Now(Turn),
    /// Nothing before this time.
    At(Nanoseconds),
    /// Nothing before a request is finished.
    Never,
}

#[derive(Debug)]
pub struct Arrivals {
    kind: Kind,
    /// The time at which its target's own time was 0.
    origin: Nanoseconds,
    /// When the slice is over.
    until: Nanoseconds,
}

#[derive(Debug)]
enum Kind {
    Closed { due: BinaryHeap<Reverse<Due>> },
    Constant { interval: Nanoseconds, due: BinaryHeap<Reverse<Due>> },
    Open { grid: Grid, free: Vec<usize> },
}

/// A user's next request: `at` is when the user is free for it, in its target's own time.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Due {
    at: Nanoseconds,
    user: usize,
    intended: Nanoseconds,
}

/// This thread's share of evenly spaced times: every `step`th from `next` on.
#[derive(Debug)]
struct Grid {
    rate: f64,
    next: u64,
    step: u64,
}

/// One thread among those that send to a target.
#[derive(Debug, Clone, Copy)]
pub struct Share {
    pub thread: usize,
    pub threads: usize,
    /// The most requests that a user has under way.
    pub pipeline: usize,
}

impl Share {
    /// This thread's part of so many users.
    pub fn of(self, users: usize) -> usize {
        users / self.threads + usize::from(self.thread < users % self.threads)
    }

    /// The most requests that this part of the users has under way.
    pub fn slots(self, users: usize) -> usize {
        self.of(users) * self.pipeline
    }
}

impl Arrivals {
    /// Users, or slots of users, back to back; [`Arrivals::begin`] tells how many.
    pub fn closed() -> Self {
        Self::new(Kind::Closed { due: BinaryHeap::new() })
    }

    /// `users` of all threads together send `rate` requests a second, each of their slots in its
    /// own equal part of the interval between two requests of one slot.
    pub fn constant(rate: f64, users: usize, share: Share) -> Self {
        let slots = users * share.pipeline;
        let interval = slots as f64 / rate * 1e9;
        let due = (0..share.slots(users)).map(|user| {
            let (number, turn) = (user / share.pipeline, user % share.pipeline);
            let phase = (share.thread + number * share.threads + turn * users) as f64;
            let phase = phase / slots as f64;
            let at = (phase * interval) as Nanoseconds;
            Reverse(Due { at, user, intended: at })
        });
        Self::new(Kind::Constant { interval: interval as Nanoseconds, due: due.collect() })
    }

    /// All threads together send `rate` requests a second on up to `connections`; each takes all
    /// requests that it can have under way before the next one takes any.
    pub fn open(rate: f64, connections: usize, share: Share) -> Self {
        let grid = Grid { rate, next: share.thread as u64, step: share.threads as u64 };
        Self::new(Kind::Open { grid, free: (0..share.slots(connections)).rev().collect() })
    }

    fn new(kind: Kind) -> Self {
        Self { kind, origin: 0, until: 0 }
    }

    /// Load starts, in a closed loop with so many users, in a slice that is over at `until`.
    /// Since the last slice was over time has stood still, also while answers were waited for.
    pub fn begin(&mut self, start: Nanoseconds, until: Nanoseconds, users: usize) {
        self.origin += start - self.until;
        self.until = until;
        let passed = start - self.origin;
        match &mut self.kind {
            Kind::Closed { due } => {
                let users = (0..users).map(|user| Due { at: passed, user, intended: passed });
                due.clear();
                due.extend(users.map(Reverse));
            }
            Kind::Constant { due, .. } => {
                let free = |Reverse(due): Reverse<Due>| {
                    Reverse(Due { at: due.intended.max(due.at.min(passed)), ..due })
                };
                *due = std::mem::take(due).into_iter().map(free).collect();
            }
            Kind::Open { .. } => {}
        }
    }

    /// Load goes on in a slice that is over at `until`.
    pub fn go_on(&mut self, until: Nanoseconds) {
        self.until = until;
    }

    /// What may be sent at `now`. An open loop sends after its slice, too, what should have been
    /// sent in it.
    pub fn next(&mut self, now: Nanoseconds) -> Next {
        let Self { kind, origin, until } = self;
        let (origin, until) = (*origin, *until);
        match kind {
            Kind::Closed { due } | Kind::Constant { due, .. } => {
                let Some(at) = due.peek().map(|due| origin + due.0.at) else {
                    return Next::Never;
                };
                if at >= until || now >= until {
                    return Next::Never;
                }
                if at > now {
                    return Next::At(at);
                }
                due.pop().map_or(Next::Never, |Reverse(due)| {
                    Next::Now(Turn {
                        user: due.user,
                        intended: origin + due.intended,
                        anchor: due.at,
                    })
                })
            }
            Kind::Open { grid, free } => {
                let intended = origin + grid.time();
                if intended >= until || free.is_empty() {
                    return Next::Never;
                }
                if intended > now {
                    return Next::At(intended);
                }
                free.pop().map_or(Next::Never, |user| {
                    grid.next += grid.step;
                    Next::Now(Turn { user, intended, anchor: 0 })
                })
            }
        }
    }

    /// Whether requests that should start in the slice wait for a connection.
    pub fn is_behind(&self) -> bool {
        match &self.kind {
            Kind::Closed { .. } | Kind::Constant { .. } => false,
            Kind::Open { grid, .. } => self.origin + grid.time() < self.until,
        }
    }

    /// The user of this turn is free again at `end`.
    pub fn finished(&mut self, turn: &Turn, end: Nanoseconds) {
        let end = end - self.origin;
        match &mut self.kind {
            Kind::Closed { due } => {
                due.push(Reverse(Due { at: end, user: turn.user, intended: end }));
            }
            Kind::Constant { interval, due } => {
                let intended = turn.anchor + *interval;
                due.push(Reverse(Due { at: intended.max(end), user: turn.user, intended }));
            }
            Kind::Open { free, .. } => free.push(turn.user),
        }
    }

    /// In a closed loop a request is intended for when it starts.
    pub fn is_closed(&self) -> bool {
        matches!(self.kind, Kind::Closed { .. })
    }

    /// Whether connections are made when they are needed.
    pub fn is_open(&self) -> bool {
        matches!(self.kind, Kind::Open { .. })
    }
}

impl Grid {
    /// The next time, in its target's own time.
    fn time(&self) -> Nanoseconds {
        (self.next as f64 * 1e9 / self.rate) as Nanoseconds
    }
}

#[cfg(test)]
#[path = "arrivals_test.rs"]
mod tests;
