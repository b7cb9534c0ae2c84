// SPDX-License-Identifier: Apache-2.0
//! One user, one thread, back to back: plain blocking calls, which are the shortest
//! way to the next request.

use super::{Sender, Settings};
use crate::clock::{Clock, Nanoseconds};
use crate::net::connection::{Connection, Progress};
use crate::net::socket::Waiting;
use crate::record::sample::{ErrorKind, Outcome, Sample};
use crate::record::sample_queue::SampleQueue;
use crate::schedule::slices::Slice;
use crate::stop;
use crate::target::Target;
use std::time::Duration;

/// A pause after a connect that failed, so that a service that is down is not stormed.
const PAUSE: Duration = Duration::from_millis(1);

pub struct SingleUser {
    settings: Settings,
    connections: Vec<Option<Connection>>,
    waiting: Waiting,
}

impl SingleUser {
    pub fn new(settings: Settings) -> Self {
        let connect = Duration::from_nanos(settings.timeout.unsigned_abs());
        Self {
            connections: settings.targets.iter().map(|_| None).collect(),
            waiting: Waiting::Blocking { connect },
            settings,
        }
    }

    /// One request from its start to its end; `None` if it was cut short by a stop.
    fn request(&mut self, target: usize) -> Option<(Nanoseconds, Outcome, Nanoseconds)> {
        let service = &self.settings.targets[target];
        let mut start = self.settings.clock.now();
        let mut connection = match self.connections[target].take() {
            Some(open) => open,
            None => match Connection::open(service, self.waiting) {
                Ok(fresh) if self.settings.per_request => fresh,
                Ok(fresh) => {
                    start = self.settings.clock.now();
                    fresh
                }
                // What kept it from connecting may be no error of the service.
                Err(_) if stop::asked() => return None,
                Err(error) => {
                    let end = self.settings.clock.now();
                    std::thread::sleep(PAUSE);
                    return Some((start, Outcome::failed(ErrorKind::of_opening(&error)), end));
                }
            },
        };
        let progress =
            exchange(&mut connection, service, self.settings.clock, start + self.settings.timeout)?;
        let end = self.settings.clock.now();
        let outcome = match progress {
            Progress::Done(outcome) => {
                if connection.is_reusable() && !self.settings.per_request {
                    self.connections[target] = Some(connection);
                }
                outcome
            }
            Progress::Failed(outcome) => outcome,
            Progress::Partial | Progress::Waiting => connection.give_up(ErrorKind::Timeout),
        };
        Some((start, outcome, end))
    }
}

/// Sends and receives until the request is done, has failed, or its time is over
/// (`Partial`, `Waiting`); `None` if it was cut short by a stop.
fn exchange(
    connection: &mut Connection,
    target: &Target,
    clock: Clock,
    deadline: Nanoseconds,
) -> Option<Progress> {
    connection.begin();
    let mut held_up = false;
    loop {
        let sent = connection.is_sent();
        // A server that takes no more of a request may have answered it already.
        let progress = if sent || (held_up && !connection.is_quiet()) {
            connection.receive()
        } else {
            connection.send(target)
        };
        held_up = progress == Progress::Waiting;
        match progress {
            Progress::Done(_) | Progress::Failed(_) => return Some(progress),
            // The request has just gone out: its time is not over.
            Progress::Partial if !sent => {}
            // An answer may go on for ever, too: time is over all the same.
            Progress::Partial | Progress::Waiting if stop::asked() => return None,
            Progress::Partial | Progress::Waiting => {
                let left = deadline - clock.now();
                let left = Duration::from_nanos(left.max(0).unsigned_abs());
                if left.is_zero() || connection.wait_at_most(left).is_err() {
                    return Some(progress);
                }
            }
        }
    }
}

impl Sender for SingleUser {
    fn prepare(&mut self, slice: &Slice) {
        let connection = &mut self.connections[slice.target];
        if connection.as_mut().is_some_and(|open| !open.is_quiet()) {
            *connection = None;
        }
        if connection.is_none() && !self.settings.per_request {
            *connection = Connection::open(&self.settings.targets[slice.target], self.waiting).ok();
        }
    }

    fn run(&mut self, slice: &Slice, start: Nanoseconds, queue: &mut SampleQueue) -> Nanoseconds {
        let until = start + slice.length;
        let recorded = slice.number.is_some();
        let mut now = start;
        while now < until
            && !stop::asked()
            && (!recorded || self.settings.request_limit.take(slice.target))
        {
            let Some((start, outcome, end)) = self.request(slice.target) else { break };
            let sample = Sample {
                target: slice.target as u16,
                slice: slice.number.unwrap_or_default(),
                intended: start,
                start,
                duration: end - start,
                outcome,
            };
            queue.push(sample, recorded);
            now = end;
        }
        self.settings.clock.now()
    }
}
