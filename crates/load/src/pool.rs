// SPDX-License-Identifier: Apache-2.0
//! Many users on one thread, in any mode: connections that are polled.

use crate::clock::Nanoseconds;
use crate::connection::{Connection, Progress};
use crate::crew::{Sender, Settings};
use crate::epoll::{Epoll, Interest};
use crate::log::Log;
use crate::pace::{Next, Pace, Share, Turn};
use crate::sample::{ErrorKind, Outcome, Sample};
use crate::slices::Slice;
use crate::socket::Waiting;
use crate::stop::{self, LOOK_UP};
use std::io;
use std::time::Duration;

/// A user waits so long after a connect that failed: a service that is down is not
/// stormed.
const PAUSE: Nanoseconds = 1_000_000;
/// A connection that was idle for so long is looked at before it is used: when requests are
/// late nobody may have seen yet that the server has closed it.
const IDLE: Nanoseconds = 1_000_000;

pub struct Pool {
    settings: Settings,
    share: Share,
    epoll: Epoll,
    lines: Vec<Line>,
    /// Requests under way.
    busy: usize,
    /// When to look for requests whose time is over.
    look_at: Nanoseconds,
}

/// One target: its pace and its users.
struct Line {
    pace: Pace,
    users: Vec<User>,
}

/// Whoever sends one request at a time, on a connection of their own.
#[derive(Default)]
struct User {
    connection: Option<Connection>,
    under_way: Option<UnderWay>,
    idle_since: Nanoseconds,
    /// The socket is also waited for to become writable.
    wants_to_write: bool,
}

impl User {
    /// Gives up an idle connection that the server has closed, or on which something came that
    /// nobody asked for.
    fn keep_if_quiet(&mut self) {
        if self.connection.as_mut().is_some_and(|connection| !connection.is_quiet()) {
            self.connection = None;
        }
    }
}

struct UnderWay {
    turn: Turn,
    slice: Option<i32>,
    start: Nanoseconds,
    connecting: bool,
}

impl Pool {
    /// `users` is the most that a slice has, of all threads together.
    pub fn new(
        settings: Settings,
        users: usize,
        share: Share,
        pace: impl Fn() -> Pace,
    ) -> io::Result<Self> {
        let line = |_| Line {
            pace: pace(),
            users: (0..share.of(users)).map(|_| User::default()).collect(),
        };
        Ok(Self {
            lines: (0..settings.targets.len()).map(line).collect(),
            settings,
            share,
            epoll: Epoll::new()?,
            busy: 0,
            look_at: 0,
        })
    }

    /// Starts what is due and returns when there may be more.
    fn send_due(&mut self, slice: &Slice, until: Nanoseconds, log: &mut Log) -> Nanoseconds {
        while !stop::asked() {
            let now = self.settings.clock.now();
            let pace = &mut self.lines[slice.target].pace;
            match pace.next(now, until) {
                Next::Now(turn) => {
                    let too_late = pace.is_open() && now - turn.intended >= self.settings.timeout;
                    if slice.number.is_some() && !self.settings.budget.take(slice.target) {
                        return Nanoseconds::MAX;
                    }
                    if too_late {
                        self.give_up_unsent(slice, turn, now, log);
                    } else {
                        self.start(slice, turn, now, log);
                    }
                }
                Next::At(at) => return at,
                Next::Never => return Nanoseconds::MAX,
            }
        }
        Nanoseconds::MAX
    }

    /// Whoever was to send this has waited for a connection as long as for an answer. Without
    /// that an open loop above what the service bears would go on for hours after its window.
    fn give_up_unsent(&mut self, slice: &Slice, turn: Turn, now: Nanoseconds, log: &mut Log) {
        let place = (slice.target, turn.user);
        let under_way = UnderWay { turn, slice: slice.number, start: now, connecting: false };
        self.lines[place.0].users[place.1].under_way = Some(under_way);
        self.busy += 1;
        self.finish(place, Outcome::failed(ErrorKind::Timeout), true, log);
    }

    fn start(&mut self, slice: &Slice, turn: Turn, now: Nanoseconds, log: &mut Log) {
        let place = (slice.target, turn.user);
        let user = &mut self.lines[slice.target].users[turn.user];
        if now - user.idle_since > IDLE {
            user.keep_if_quiet();
        }
        let start = self.settings.clock.now();
        let connecting = user.connection.is_none();
        user.under_way = Some(UnderWay { turn, slice: slice.number, start, connecting });
        self.busy += 1;
        if let Some(connection) = &mut user.connection {
            connection.begin();
            return self.send(place, log);
        }
        let opened = Connection::open(&self.settings.targets[slice.target], Waiting::Polled);
        let opened = opened.and_then(|connection| {
            self.epoll.add(connection.channel().socket().raw(), key(place), Interest::Both)?;
            Ok(connection)
        });
        match opened {
            Ok(connection) => {
                user.connection = Some(connection);
                user.wants_to_write = true;
            }
            // What kept it from connecting may be no error of the service.
            Err(_) if stop::asked() => {}
            Err(error) => {
                let outcome = Outcome::failed(ErrorKind::of_opening(&error));
                self.finish(place, outcome, false, log);
            }
        }
    }

    /// A connection that is being made has news.
    fn connected(&mut self, place: Place, log: &mut Log) {
        let user = &mut self.lines[place.0].users[place.1];
        let (Some(connection), Some(under_way)) = (&mut user.connection, &mut user.under_way)
        else {
            return;
        };
        match connection.go_on_opening() {
            Ok(true) => {}
            Ok(false) => {
                let unsent = !connection.channel().is_flushed();
                return self.await_socket(place, unsent, log);
            }
            Err(error) => {
                let outcome = Outcome::failed(ErrorKind::of_opening(&error));
                return self.finish(place, outcome, false, log);
            }
        }
        under_way.connecting = false;
        if !self.settings.per_request {
            under_way.start = self.settings.clock.now();
        }
        self.send(place, log);
    }

    fn send(&mut self, place: Place, log: &mut Log) {
        let user = &mut self.lines[place.0].users[place.1];
        let Some(connection) = &mut user.connection else { return };
        let unsent = match connection.send(&self.settings.targets[place.0]) {
            Progress::Failed(outcome) | Progress::Done(outcome) => {
                return self.finish(place, outcome, false, log);
            }
            Progress::Waiting => true,
            Progress::Partial => false,
        };
        self.await_socket(place, unsent, log);
    }

    /// Waits for the socket to become readable, and writable too where there is more to send.
    fn await_socket(&mut self, place: Place, unsent: bool, log: &mut Log) {
        let user = &mut self.lines[place.0].users[place.1];
        let Some(connection) = &mut user.connection else { return };
        if unsent == user.wants_to_write {
            return;
        }
        user.wants_to_write = unsent;
        let interest = if unsent { Interest::Both } else { Interest::Readable };
        let socket = connection.channel().socket().raw();
        if self.epoll.change(socket, key(place), interest).is_err() {
            let outcome = connection.give_up(ErrorKind::Reset);
            self.finish(place, outcome, false, log);
        }
    }

    fn receive(&mut self, place: Place, log: &mut Log) {
        let user = &mut self.lines[place.0].users[place.1];
        let Some(connection) = &mut user.connection else { return };
        let target = &self.settings.targets[place.0];
        match connection.receive(target) {
            Progress::Partial | Progress::Waiting => {}
            Progress::Done(outcome) => {
                let keep = connection.is_reusable(target) && !self.settings.per_request;
                self.finish(place, outcome, keep, log);
            }
            Progress::Failed(outcome) => self.finish(place, outcome, false, log),
        }
    }

    /// Something happened to a socket.
    fn event(&mut self, place: Place, writable: bool, log: &mut Log) {
        let user = &mut self.lines[place.0].users[place.1];
        match &user.under_way {
            // Closed by the server while idle, or nothing that anybody asked for.
            None => user.keep_if_quiet(),
            Some(under_way) if under_way.connecting => self.connected(place, log),
            Some(_) => {
                if writable && user.wants_to_write {
                    self.send(place, log);
                }
                self.receive(place, log);
            }
        }
    }

    fn finish(&mut self, place: Place, outcome: Outcome, keep: bool, log: &mut Log) {
        let end = self.settings.clock.now();
        let line = &mut self.lines[place.0];
        let user = &mut line.users[place.1];
        if !keep {
            user.connection = None;
        }
        let Some(UnderWay { turn, slice, start, .. }) = user.under_way.take() else { return };
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
        let pause = if matches!(outcome.error, Some(ErrorKind::Connect | ErrorKind::Tls)) {
            PAUSE
        } else {
            0
        };
        line.pace.finished(&turn, end + pause);
    }

    /// Ends the requests whose time is over.
    fn give_up_overdue(&mut self, now: Nanoseconds, log: &mut Log) {
        let timeout = self.settings.timeout;
        self.look_at = now + (timeout / 10).clamp(1_000_000, LOOK_UP.as_nanos() as Nanoseconds);
        for target in 0..self.lines.len() {
            for at in 0..self.lines[target].users.len() {
                let User { connection, under_way, .. } = &self.lines[target].users[at];
                let (Some(connection), Some(under_way)) = (connection, under_way) else { continue };
                if now - under_way.start < timeout {
                    continue;
                }
                let outcome = if under_way.connecting {
                    Outcome::failed(ErrorKind::Connect)
                } else {
                    connection.give_up(ErrorKind::Timeout)
                };
                self.finish((target, at), outcome, false, log);
            }
        }
    }

    /// A stop: requests under way have no outcome, and are not recorded.
    fn abandon(&mut self) {
        for user in self.lines.iter_mut().flat_map(|line| &mut line.users) {
            if user.under_way.take().is_some() {
                user.connection = None;
            }
        }
        self.busy = 0;
    }
}

impl Sender for Pool {
    fn prepare(&mut self, slice: &Slice) {
        let line = &mut self.lines[slice.target];
        let needed = match (self.settings.per_request, line.pace.is_open()) {
            (true, _) => 0,
            // More are made when they are needed.
            (false, true) => 1,
            (false, false) => self.share.of(slice.users),
        };
        let timeout = Duration::from_nanos(self.settings.timeout.unsigned_abs());
        let waiting = Waiting::Blocking { connect: timeout };
        for (at, user) in line.users.iter_mut().enumerate() {
            user.keep_if_quiet();
            if user.connection.is_some() || at >= needed {
                continue;
            }
            let opened = Connection::open(&self.settings.targets[slice.target], waiting);
            let opened = opened.and_then(|connection| {
                connection.channel().socket().never_block()?;
                let socket = connection.channel().socket().raw();
                self.epoll.add(socket, key((slice.target, at)), Interest::Readable)?;
                Ok(connection)
            });
            user.wants_to_write = false;
            match opened {
                Ok(connection) => user.connection = Some(connection),
                // Those that cannot be made now are errors of the requests that need them: to
                // wait for each of them here would take hours with many users.
                Err(error) if error.kind() == io::ErrorKind::TimedOut || stop::asked() => return,
                Err(_) => {}
            }
        }
    }

    fn run(&mut self, slice: &Slice, start: Nanoseconds, log: &mut Log) -> Nanoseconds {
        let until = start + slice.length;
        let users = self.share.of(slice.users);
        self.lines[slice.target].pace.begin(start, users, slice.continues);
        let end = loop {
            let spent = slice.number.is_some() && self.settings.budget.is_spent_for(slice.target);
            let wake = if spent { Nanoseconds::MAX } else { self.send_due(slice, until, log) };
            let now = self.settings.clock.now();
            if stop::asked() {
                self.abandon();
                break now;
            }
            let behind = !spent && self.lines[slice.target].pace.is_behind(until);
            let finished = self.busy == 0 && !behind;
            if (now >= until && (finished || !slice.drains)) || (spent && finished) {
                break now;
            }
            if now >= self.look_at {
                self.give_up_overdue(now, log);
            }
            let border = if now < until { until } else { Nanoseconds::MAX };
            self.epoll.wait(wake.min(border).min(self.look_at) - now);
            for at in 0..self.epoll.ready() {
                let (key, writable) = self.epoll.event(at);
                self.event(place(key), writable, log);
            }
        };
        self.lines[slice.target].pace.end(end, slice.length, slice.drains);
        end
    }
}

/// A user, by target and number.
type Place = (usize, usize);

fn key((target, user): Place) -> u64 {
    (target as u64) << 32 | user as u64
}

fn place(key: u64) -> Place {
    ((key >> 32) as usize, (key & 0xffff_ffff) as usize)
}
