// SPDX-License-Identifier: Apache-2.0
//! Many users on one thread, in any mode and over any transport: when each request is sent, and the
//! times that are taken of it.

use super::{Sender, Settings};
use crate::clock::Nanoseconds;
use crate::net::transport::{Events, RequestSlot, Transport, TransportEvent};
use crate::record::sample::{ErrorKind, Outcome, Sample};
use crate::record::sample_queue::SampleQueue;
use crate::schedule::arrivals::{Arrivals, Next, Share, Turn};
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

pub struct UserPool<W> {
    settings: Settings,
    share: Share,
    transport: W,
    targets: Vec<TargetUsers>,
    /// Requests under way.
    busy: usize,
    /// When to look for requests whose time is over.
    look_at: Nanoseconds,
    /// Of one event; empty between events, and kept for its memory.
    events: Events,
}

/// One target: its arrivals and the slots of its users.
struct TargetUsers {
    arrivals: Arrivals,
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

impl<W: Transport> UserPool<W> {
    /// `users` is the most that a slice has, of all threads together.
    pub fn new(
        settings: Settings,
        users: usize,
        share: Share,
        transport: W,
        arrivals: impl Fn() -> Arrivals,
    ) -> Self {
        let target = |_| TargetUsers {
            arrivals: arrivals(),
            users: (0..share.slots(users)).map(|_| User::default()).collect(),
        };
        Self {
            targets: (0..settings.targets.len()).map(target).collect(),
            settings,
            share,
            transport,
            busy: 0,
            look_at: 0,
            events: Vec::new(),
        }
    }

    /// Starts what is due and returns when there may be more.
    fn send_due(&mut self, slice: &Slice, queue: &mut SampleQueue) -> Nanoseconds {
        while !stop::asked() {
            let now = self.settings.clock.now();
            let arrivals = &mut self.targets[slice.target].arrivals;
            match arrivals.next(now) {
                Next::Now(turn) => {
                    let too_late =
                        arrivals.is_open() && now - turn.intended >= self.settings.timeout;
                    if slice.number.is_some() && !self.settings.request_limit.take(slice.target) {
                        return Nanoseconds::MAX;
                    }
                    let slot = (slice.target, turn.user);
                    self.begin(slot, UnderWay { turn, slice: slice.number, start: now });
                    if too_late {
                        // Whoever was to send this has waited for a connection as long as for an
                        // answer. Without that an open loop above what the service bears would
                        // go on for hours after its window.
                        self.finish(slot, Outcome::failed(ErrorKind::Timeout), queue);
                    } else {
                        self.open(slot, now, queue);
                    }
                }
                Next::At(at) => return at,
                Next::Never => return Nanoseconds::MAX,
            }
        }
        Nanoseconds::MAX
    }

    fn begin(&mut self, slot: RequestSlot, request: UnderWay) {
        self.targets[slot.0].users[slot.1].under_way = Some(request);
        self.busy += 1;
    }

    fn open(&mut self, slot: RequestSlot, now: Nanoseconds, queue: &mut SampleQueue) {
        let idle = now - self.targets[slot.0].users[slot.1].idle_since > IDLE;
        match self.transport.open(slot, idle) {
            Ok(true) => self.send(slot, queue),
            Ok(false) => {}
            // What kept it from connecting may be no error of the service.
            Err(_) if stop::asked() => {}
            Err(error) => {
                self.finish(slot, Outcome::failed(ErrorKind::of_opening(&error)), queue);
            }
        }
    }

    /// The request's time starts here, or has started with its own connection.
    fn send(&mut self, slot: RequestSlot, queue: &mut SampleQueue) {
        if !self.settings.per_request
            && let Some(under_way) = &mut self.targets[slot.0].users[slot.1].under_way
        {
            under_way.start = self.settings.clock.now();
        }
        if let Some(outcome) = self.transport.send(slot) {
            self.finish(slot, outcome, queue);
        }
    }

    fn event(&mut self, at: usize, queue: &mut SampleQueue) {
        let mut events = std::mem::take(&mut self.events);
        self.transport.event(at, &mut events);
        for (slot, event) in events.drain(..) {
            match event {
                TransportEvent::Open => self.send(slot, queue),
                TransportEvent::Ended(outcome) => self.finish(slot, outcome, queue),
            }
        }
        self.events = events;
    }

    fn finish(&mut self, slot: RequestSlot, outcome: Outcome, queue: &mut SampleQueue) {
        let end = self.settings.clock.now();
        let target = &mut self.targets[slot.0];
        let user = &mut target.users[slot.1];
        let Some(UnderWay { turn, slice, start }) = user.under_way.take() else { return };
        user.idle_since = end;
        self.busy -= 1;
        let sample = Sample {
            target: slot.0 as u16,
            slice: slice.unwrap_or_default(),
            intended: if target.arrivals.is_closed() { start } else { turn.intended },
            start,
            duration: end - start,
            outcome,
        };
        queue.push(sample, slice.is_some());
        let failed = matches!(outcome.error, Some(ErrorKind::Connect | ErrorKind::Tls));
        target.arrivals.finished(&turn, end + if failed { PAUSE } else { 0 });
    }

    /// Ends the requests whose time is over.
    fn give_up_overdue(&mut self, now: Nanoseconds, queue: &mut SampleQueue) {
        let timeout = self.settings.timeout;
        self.look_at = now + (timeout / 10).clamp(1_000_000, LOOK_UP.as_nanos() as Nanoseconds);
        for target in 0..self.targets.len() {
            for at in 0..self.targets[target].users.len() {
                let under_way = &self.targets[target].users[at].under_way;
                if under_way.as_ref().is_some_and(|request| now - request.start >= timeout) {
                    let outcome = self.transport.give_up((target, at), ErrorKind::Timeout);
                    self.finish((target, at), outcome, queue);
                }
            }
        }
    }

    /// A stop: requests under way have no outcome, and are not recorded.
    fn abandon(&mut self) {
        for (number, target) in self.targets.iter_mut().enumerate() {
            for (at, user) in target.users.iter_mut().enumerate() {
                if user.under_way.take().is_some() {
                    self.transport.give_up((number, at), ErrorKind::Timeout);
                }
            }
        }
        self.busy = 0;
    }
}

impl<W: Transport> Sender for UserPool<W> {
    fn prepare(&mut self, slice: &Slice) {
        // An open loop makes further connections when it needs them.
        let open = self.targets[slice.target].arrivals.is_open();
        let users = if open { 1 } else { self.share.of(slice.users) };
        let patience = Duration::from_nanos(self.settings.timeout.unsigned_abs());
        self.transport.prepare(slice.target, users, patience);
    }

    fn run(&mut self, slice: &Slice, start: Nanoseconds, queue: &mut SampleQueue) -> Nanoseconds {
        let until = start + slice.length;
        let arrivals = &mut self.targets[slice.target].arrivals;
        if slice.continues {
            arrivals.go_on(until);
        } else {
            arrivals.begin(start, until, self.share.slots(slice.users));
        }
        loop {
            let spent =
                slice.number.is_some() && self.settings.request_limit.is_spent_for(slice.target);
            let wake = if spent { Nanoseconds::MAX } else { self.send_due(slice, queue) };
            self.transport.push_out();
            let now = self.settings.clock.now();
            if stop::asked() {
                self.abandon();
                return now;
            }
            let behind = !spent && self.targets[slice.target].arrivals.is_behind();
            let finished = self.busy == 0 && !behind;
            if (now >= until && (finished || !slice.drains)) || (spent && finished) {
                return now;
            }
            if now >= self.look_at {
                self.give_up_overdue(now, queue);
            }
            let border = if now < until { until } else { Nanoseconds::MAX };
            let most = (wake - NEAR).min(border).min(self.look_at) - now;
            let events = self.transport.wait(most);
            for at in 0..events {
                self.event(at, queue);
            }
            if most <= 0 && events == 0 {
                // A service that shares the CPU is not to wait for this one's waiting.
                std::thread::yield_now();
            }
        }
    }
}
