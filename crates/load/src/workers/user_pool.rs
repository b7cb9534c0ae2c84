// SPDX-License-Identifier: Apache-2.0
//! Many users on one thread, in any mode and over any wire: when each request is sent, and the
//! times that are taken of it.

use super::{Sender, Settings};
use crate::clock::Nanoseconds;
use crate::net::transport::{News, Place, Wire};
use crate::record::sample::{ErrorKind, Outcome, Sample};
use crate::record::sample_queue::Log;
use crate::schedule::arrivals::{Next, Pace, Share, Turn};
use crate::schedule::slices::Slice;
use crate::stop::{self, LOOK_UP};
use std::time::Duration;

/// A user waits so long after a connect that failed: a service that is down is not
/// stormed.
const PAUSE: Nanoseconds = 1_000_000;
/// A connection that was idle for so long is looked at before it is used: when requests are
/// late nobody may have seen yet that the server has closed it.
const IDLE: Nanoseconds = 1_000_000;
/// A thread that sleeps until a request's time wakes up after it, in a virtual machine by tens of
/// microseconds: the last bit of the way is awaited awake (docs/decisions/0072).
const NEAR: Nanoseconds = 50_000;

pub struct Pool<W> {
    settings: Settings,
    share: Share,
    wire: W,
    lines: Vec<Line>,
    /// Requests under way.
    busy: usize,
    /// When to look for requests whose time is over.
    look_at: Nanoseconds,
    /// Of one event; empty between events, and kept for its memory.
    news: Vec<(Place, News)>,
}

/// One target: its pace and the places of its users.
struct Line {
    pace: Pace,
    users: Vec<User>,
}

/// Whoever sends one request at a time.
#[derive(Default)]
struct User {
    under_way: Option<UnderWay>,
    idle_since: Nanoseconds,
}

struct UnderWay {
    turn: Turn,
    slice: Option<i32>,
    start: Nanoseconds,
}

impl<W: Wire> Pool<W> {
    /// `users` is the most that a slice has, of all threads together.
    pub fn new(
        settings: Settings,
        users: usize,
        share: Share,
        wire: W,
        pace: impl Fn() -> Pace,
    ) -> Self {
        let line = |_| Line {
            pace: pace(),
            users: (0..share.places(users)).map(|_| User::default()).collect(),
        };
        Self {
            lines: (0..settings.targets.len()).map(line).collect(),
            settings,
            share,
            wire,
            busy: 0,
            look_at: 0,
            news: Vec::new(),
        }
    }

    /// Starts what is due and returns when there may be more.
    fn send_due(&mut self, slice: &Slice, log: &mut Log) -> Nanoseconds {
        while !stop::asked() {
            let now = self.settings.clock.now();
            let pace = &mut self.lines[slice.target].pace;
            match pace.next(now) {
                Next::Now(turn) => {
                    let too_late = pace.is_open() && now - turn.intended >= self.settings.timeout;
                    if slice.number.is_some() && !self.settings.budget.take(slice.target) {
                        return Nanoseconds::MAX;
                    }
                    let place = (slice.target, turn.user);
                    self.begin(place, UnderWay { turn, slice: slice.number, start: now });
                    if too_late {
                        // Whoever was to send this has waited for a connection as long as for an
                        // answer. Without that an open loop above what the service bears would
                        // go on for hours after its window.
                        self.finish(place, Outcome::failed(ErrorKind::Timeout), log);
                    } else {
                        self.open(place, now, log);
                    }
                }
                Next::At(at) => return at,
                Next::Never => return Nanoseconds::MAX,
            }
        }
        Nanoseconds::MAX
    }

    fn begin(&mut self, place: Place, request: UnderWay) {
        self.lines[place.0].users[place.1].under_way = Some(request);
        self.busy += 1;
    }

    fn open(&mut self, place: Place, now: Nanoseconds, log: &mut Log) {
        let idle = now - self.lines[place.0].users[place.1].idle_since > IDLE;
        match self.wire.open(place, idle) {
            Ok(true) => self.send(place, log),
            Ok(false) => {}
            // What kept it from connecting may be no error of the service.
            Err(_) if stop::asked() => {}
            Err(error) => {
                self.finish(place, Outcome::failed(ErrorKind::of_opening(&error)), log);
            }
        }
    }

    /// The request's time starts here, or has started with its own connection.
    fn send(&mut self, place: Place, log: &mut Log) {
        if !self.settings.per_request
            && let Some(under_way) = &mut self.lines[place.0].users[place.1].under_way
        {
            under_way.start = self.settings.clock.now();
        }
        if let Some(outcome) = self.wire.send(place) {
            self.finish(place, outcome, log);
        }
    }

    fn event(&mut self, at: usize, log: &mut Log) {
        let mut news = std::mem::take(&mut self.news);
        self.wire.event(at, &mut news);
        for (place, new) in news.drain(..) {
            match new {
                News::Open => self.send(place, log),
                News::Ended(outcome) => self.finish(place, outcome, log),
            }
        }
        self.news = news;
    }

    fn finish(&mut self, place: Place, outcome: Outcome, log: &mut Log) {
        let end = self.settings.clock.now();
        let line = &mut self.lines[place.0];
        let user = &mut line.users[place.1];
        let Some(UnderWay { turn, slice, start }) = user.under_way.take() else { return };
        user.idle_since = end;
        self.busy -= 1;
        let sample = Sample {
            target: place.0 as u16,
            slice: slice.unwrap_or_default(),
            intended: if line.pace.is_closed() { start } else { turn.intended },
            start,
            duration: end - start,
            outcome,
        };
        log.push(sample, slice.is_some());
        let failed = matches!(outcome.error, Some(ErrorKind::Connect | ErrorKind::Tls));
        line.pace.finished(&turn, end + if failed { PAUSE } else { 0 });
    }

    /// Ends the requests whose time is over.
    fn give_up_overdue(&mut self, now: Nanoseconds, log: &mut Log) {
        let timeout = self.settings.timeout;
        self.look_at = now + (timeout / 10).clamp(1_000_000, LOOK_UP.as_nanos() as Nanoseconds);
        for target in 0..self.lines.len() {
            for at in 0..self.lines[target].users.len() {
                let under_way = &self.lines[target].users[at].under_way;
                if under_way.as_ref().is_some_and(|request| now - request.start >= timeout) {
                    let outcome = self.wire.give_up((target, at), ErrorKind::Timeout);
                    self.finish((target, at), outcome, log);
                }
            }
        }
    }

    /// A stop: requests under way have no outcome, and are not recorded.
    fn abandon(&mut self) {
        for (target, line) in self.lines.iter_mut().enumerate() {
            for (at, user) in line.users.iter_mut().enumerate() {
                if user.under_way.take().is_some() {
                    self.wire.give_up((target, at), ErrorKind::Timeout);
                }
            }
        }
        self.busy = 0;
    }
}

impl<W: Wire> Sender for Pool<W> {
    fn prepare(&mut self, slice: &Slice) {
        // An open loop makes further connections when it needs them.
        let open = self.lines[slice.target].pace.is_open();
        let users = if open { 1 } else { self.share.of(slice.users) };
        let patience = Duration::from_nanos(self.settings.timeout.unsigned_abs());
        self.wire.prepare(slice.target, users, patience);
    }

    fn run(&mut self, slice: &Slice, start: Nanoseconds, log: &mut Log) -> Nanoseconds {
        let until = start + slice.length;
        let pace = &mut self.lines[slice.target].pace;
        if slice.continues {
            pace.go_on(until);
        } else {
            pace.begin(start, until, self.share.places(slice.users));
        }
        loop {
            let spent = slice.number.is_some() && self.settings.budget.is_spent_for(slice.target);
            let wake = if spent { Nanoseconds::MAX } else { self.send_due(slice, log) };
            self.wire.push_out();
            let now = self.settings.clock.now();
            if stop::asked() {
                self.abandon();
                return now;
            }
            let behind = !spent && self.lines[slice.target].pace.is_behind();
            let finished = self.busy == 0 && !behind;
            if (now >= until && (finished || !slice.drains)) || (spent && finished) {
                return now;
            }
            if now >= self.look_at {
                self.give_up_overdue(now, log);
            }
            let border = if now < until { until } else { Nanoseconds::MAX };
            let most = (wake - NEAR).min(border).min(self.look_at) - now;
            let events = self.wire.wait(most);
            for at in 0..events {
                self.event(at, log);
            }
            if most <= 0 && events == 0 {
                // A service that shares the CPU is not to wait for this one's waiting.
                std::thread::yield_now();
            }
        }
    }
}
