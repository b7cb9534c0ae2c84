// SPDX-License-Identifier: Apache-2.0
//! Connections of many users, each with one of its own: HTTP/1.1, and bytes over TCP. With
//! pipelining a user has several slots, whose requests are under way on its one connection.

use super::connection::{Connection, Progress};
use super::epoll::{Epoll, Interest};
use super::socket::Waiting;
use super::transport::{Events, RequestSlot, Transport, TransportEvent};
use crate::clock::Nanoseconds;
use crate::record::sample::{ErrorKind, Outcome};
use crate::stop;
use crate::target::Target;
use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

pub struct Connections {
    targets: Arc<[Target]>,
    per_request: bool,
    /// Slots of a user.
    pipeline: usize,
    epoll: Epoll,
    users: Vec<Vec<User>>,
    /// The user whose requests are sent together, once another one has some or all are there.
    unsent: Option<At>,
    /// What was found out between events.
    late: Events,
}

/// A user, by target and number.
type At = (usize, usize);

struct User {
    connection: Option<Connection>,
    is_opening: bool,
    /// The socket is also waited for to become writable.
    wants_to_write: bool,
    /// Slots whose requests are under way, or wait for the connection, in the order in which
    /// their replies come.
    queue: VecDeque<usize>,
}

impl Connections {
    /// Of so many users for each target.
    pub fn new(
        targets: Arc<[Target]>,
        users: usize,
        pipeline: usize,
        per_request: bool,
    ) -> io::Result<Self> {
        let user = |_| User {
            connection: None,
            is_opening: false,
            wants_to_write: false,
            queue: VecDeque::with_capacity(pipeline),
        };
        let users = targets.iter().map(|_| (0..users).map(user).collect()).collect();
        let (epoll, late) = (Epoll::new()?, Vec::new());
        Ok(Self { targets, per_request, pipeline, epoll, users, unsent: None, late })
    }

    fn at(&self, slot: RequestSlot) -> At {
        (slot.0, slot.1 / self.pipeline)
    }

    fn user(&mut self, at: At) -> &mut User {
        &mut self.users[at.0][at.1]
    }

    /// The first request is over.
    fn end(&mut self, at: At, outcome: Outcome, events: &mut Events) {
        let slot = self.user(at).queue.pop_front();
        events.extend(slot.map(|slot| ((at.0, slot), TransportEvent::Ended(outcome))));
    }

    /// The connection is over, and with it all that was under way on it.
    fn lose(&mut self, at: At, error: ErrorKind, events: &mut Events) {
        let user = self.user(at);
        user.connection = None;
        user.is_opening = false;
        if self.unsent == Some(at) {
            self.unsent = None;
        }
        while !self.user(at).queue.is_empty() {
            self.end(at, Outcome::failed(error), events);
        }
    }

    /// Waits for the socket to become readable, and writable too where there is more to send.
    fn await_socket(&mut self, at: At, unsent: bool) -> io::Result<()> {
        let user = &mut self.users[at.0][at.1];
        let Some(connection) = &user.connection else { return Ok(()) };
        if unsent == user.wants_to_write {
            return Ok(());
        }
        user.wants_to_write = unsent;
        let interest = if unsent { Interest::Both } else { Interest::Readable };
        self.epoll.change(connection.byte_stream().socket().raw(), key(at), interest)
    }

    fn go_on_opening(&mut self, at: At, events: &mut Events) {
        let user = self.user(at);
        let Some(connection) = user.connection.as_mut() else { return };
        let opened = match connection.go_on_opening() {
            Ok(true) => {
                user.is_opening = false;
                let open = |slot| ((at.0, slot), TransportEvent::Open);
                events.extend(user.queue.drain(..).map(open));
                return;
            }
            Ok(false) => {
                let unsent = !connection.byte_stream().is_flushed();
                self.await_socket(at, unsent)
            }
            Err(error) => Err(error),
        };
        if let Err(error) = opened {
            self.lose(at, ErrorKind::of_opening(&error), events);
        }
    }

    /// Sends what there is to send.
    fn send_all(&mut self, at: At, events: &mut Events) {
        let Some(connection) = self.users[at.0][at.1].connection.as_mut() else { return };
        let progress = connection.send(&self.targets[at.0]);
        let unsent = progress == Progress::Waiting;
        self.follow_up(at, progress, events);
        if self.await_socket(at, unsent).is_err() {
            self.lose(at, ErrorKind::Reset, events);
        }
    }

    fn receive(&mut self, at: At, events: &mut Events) {
        let Some(connection) = self.user(at).connection.as_mut() else { return };
        let progress = connection.receive();
        self.follow_up(at, progress, events);
    }

    /// Ends the requests whose replies are there.
    fn follow_up(&mut self, at: At, mut progress: Progress, events: &mut Events) {
        loop {
            match progress {
                Progress::Partial | Progress::Waiting => return,
                Progress::Failed(outcome) => {
                    self.end(at, outcome, events);
                    return self.lose(at, outcome.error.unwrap_or(ErrorKind::Closed), events);
                }
                Progress::Done(outcome) => self.end(at, outcome, events),
            }
            let per_request = self.per_request;
            let user = self.user(at);
            let Some(connection) = &mut user.connection else { return };
            if connection.has_more() {
                progress = connection.receive();
            } else {
                if user.queue.is_empty() && (per_request || !connection.is_reusable()) {
                    user.connection = None;
                }
                return;
            }
        }
    }
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

impl Transport for Connections {
    fn prepare(&mut self, target: usize, users: usize, patience: Duration) {
        let users = if self.per_request { 0 } else { users };
        let start = Instant::now();
        for (at, user) in self.users[target].iter_mut().enumerate() {
            user.keep_if_quiet();
            if user.connection.is_some() || at >= users {
                continue;
            }
            let left = patience.saturating_sub(start.elapsed());
            if left.is_zero() {
                return;
            }
            let waiting = Waiting::Blocking { connect: left };
            let opened = Connection::open(&self.targets[target], waiting);
            let opened = opened.and_then(|connection| {
                connection.byte_stream().socket().never_block()?;
                let socket = connection.byte_stream().socket().raw();
                self.epoll.add(socket, key((target, at)), Interest::Readable)?;
                Ok(connection)
            });
            user.wants_to_write = false;
            match opened {
                Ok(connection) => user.connection = Some(connection),
                Err(error) if error.kind() == io::ErrorKind::TimedOut || stop::asked() => return,
                Err(_) => {}
            }
        }
    }

    fn open(&mut self, slot: RequestSlot, idle: bool) -> io::Result<bool> {
        let at = self.at(slot);
        let user = &mut self.users[at.0][at.1];
        if user.is_opening {
            user.queue.push_back(slot.1);
            return Ok(false);
        }
        if idle && user.queue.is_empty() {
            user.keep_if_quiet();
        }
        if user.connection.is_some() {
            return Ok(true);
        }
        let connection = Connection::open(&self.targets[at.0], Waiting::Polled)?;
        self.epoll.add(connection.byte_stream().socket().raw(), key(at), Interest::Both)?;
        user.connection = Some(connection);
        user.wants_to_write = true;
        user.is_opening = true;
        user.queue.push_back(slot.1);
        Ok(false)
    }

    fn send(&mut self, slot: RequestSlot) -> Option<Outcome> {
        let at = self.at(slot);
        if self.unsent.is_some_and(|unsent| unsent != at) {
            self.push_out();
        }
        let user = self.user(at);
        user.connection.as_mut()?.begin();
        user.queue.push_back(slot.1);
        if self.pipeline > 1 {
            self.unsent = Some(at);
            return None;
        }
        let mut events = Vec::new();
        self.send_all(at, &mut events);
        // A user with one slot has one request that can have ended.
        events.pop().and_then(|(_, event)| match event {
            TransportEvent::Ended(outcome) => Some(outcome),
            TransportEvent::Open => None,
        })
    }

    fn push_out(&mut self) {
        if let Some(at) = self.unsent.take() {
            let mut events = std::mem::take(&mut self.late);
            self.send_all(at, &mut events);
            self.late = events;
        }
    }

    fn wait(&mut self, most: Nanoseconds) -> usize {
        let late = usize::from(!self.late.is_empty());
        self.epoll.wait(if late > 0 { 0 } else { most });
        self.epoll.ready() + late
    }

    fn event(&mut self, event: usize, events: &mut Events) {
        events.append(&mut self.late);
        if event >= self.epoll.ready() {
            return;
        }
        let (key, writable) = self.epoll.event(event);
        let at = at(key);
        let user = self.user(at);
        if user.is_opening {
            self.go_on_opening(at, events);
        } else if user.queue.is_empty() {
            user.keep_if_quiet();
        } else {
            if writable && user.wants_to_write {
                self.send_all(at, events);
            }
            if !self.user(at).queue.is_empty() {
                self.receive(at, events);
            }
        }
    }

    fn give_up(&mut self, slot: RequestSlot, error: ErrorKind) -> Outcome {
        // It may have ended with another one on its connection.
        if let Some(late) = self.late.iter().position(|(ended, _)| *ended == slot)
            && let TransportEvent::Ended(outcome) = self.late.remove(late).1
        {
            return outcome;
        }
        let at = self.at(slot);
        let user = self.user(at);
        let is_first = user.queue.front() == Some(&slot.1);
        let (outcome, others) = match &user.connection {
            Some(connection) if is_first && !user.is_opening => (connection.give_up(error), error),
            Some(_) if !user.is_opening => (Outcome::failed(error), error),
            _ => (Outcome::failed(ErrorKind::Connect), ErrorKind::Connect),
        };
        user.queue.retain(|waiting| *waiting != slot.1);
        let mut events = std::mem::take(&mut self.late);
        self.lose(at, others, &mut events);
        self.late = events;
        outcome
    }
}

fn key((target, user): At) -> u64 {
    (target as u64) << 32 | user as u64
}

fn at(key: u64) -> At {
    ((key >> 32) as usize, (key & 0xffff_ffff) as usize)
}
