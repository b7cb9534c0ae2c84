// SPDX-License-Identifier: Apache-2.0
//! HTTP/1.1 of many users, each with a connection of their own.

use crate::clock::Nanoseconds;
use crate::connection::{Connection, Progress};
use crate::epoll::{Epoll, Interest};
use crate::sample::{ErrorKind, Outcome};
use crate::socket::Waiting;
use crate::stop;
use crate::target::Target;
use crate::wire::{News, Place, Wire};
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

pub struct Http1 {
    targets: Arc<[Target]>,
    per_request: bool,
    epoll: Epoll,
    users: Vec<Vec<User>>,
}

#[derive(Default)]
struct User {
    connection: Option<Connection>,
    stage: Stage,
    /// The socket is also waited for to become writable.
    wants_to_write: bool,
}

#[derive(Default, Clone, Copy, PartialEq)]
enum Stage {
    #[default]
    Idle,
    Opening,
    Busy,
}

impl Http1 {
    /// Of so many users for each target.
    pub fn new(targets: Arc<[Target]>, users: usize, per_request: bool) -> io::Result<Self> {
        let users = targets.iter().map(|_| (0..users).map(|_| User::default()).collect()).collect();
        Ok(Self { targets, per_request, epoll: Epoll::new()?, users })
    }

    fn user(&mut self, place: Place) -> &mut User {
        &mut self.users[place.0][place.1]
    }

    /// The request is over, and unless its connection is kept, that is, too.
    fn end(&mut self, place: Place, keep: bool) {
        let user = self.user(place);
        user.stage = Stage::Idle;
        if !keep {
            user.connection = None;
        }
    }

    /// Waits for the socket to become readable, and writable too where there is more to send.
    fn await_socket(&mut self, place: Place, unsent: bool) -> io::Result<()> {
        let user = &mut self.users[place.0][place.1];
        let Some(connection) = &user.connection else { return Ok(()) };
        if unsent == user.wants_to_write {
            return Ok(());
        }
        user.wants_to_write = unsent;
        let interest = if unsent { Interest::Both } else { Interest::Readable };
        self.epoll.change(connection.channel().socket().raw(), key(place), interest)
    }

    fn go_on_opening(&mut self, place: Place) -> Option<News> {
        let user = &mut self.users[place.0][place.1];
        let connection = user.connection.as_mut()?;
        let opened = match connection.go_on_opening() {
            Ok(true) => return Some(News::Open),
            Ok(false) => {
                let unsent = !connection.channel().is_flushed();
                self.await_socket(place, unsent)
            }
            Err(error) => Err(error),
        };
        let error = opened.err()?;
        self.end(place, false);
        Some(News::Ended(Outcome::failed(ErrorKind::of_opening(&error))))
    }

    fn receive(&mut self, place: Place) -> Option<Outcome> {
        let target = &self.targets[place.0];
        let connection = self.users[place.0][place.1].connection.as_mut()?;
        let (outcome, keep) = match connection.receive(target) {
            Progress::Partial | Progress::Waiting => return None,
            Progress::Done(outcome) => {
                (outcome, connection.is_reusable(target) && !self.per_request)
            }
            Progress::Failed(outcome) => (outcome, false),
        };
        self.end(place, keep);
        Some(outcome)
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

impl Wire for Http1 {
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
                connection.channel().socket().never_block()?;
                let socket = connection.channel().socket().raw();
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

    fn open(&mut self, place: Place, idle: bool) -> io::Result<bool> {
        let user = &mut self.users[place.0][place.1];
        if idle {
            user.keep_if_quiet();
        }
        if user.connection.is_some() {
            return Ok(true);
        }
        let connection = Connection::open(&self.targets[place.0], Waiting::Polled)?;
        self.epoll.add(connection.channel().socket().raw(), key(place), Interest::Both)?;
        user.connection = Some(connection);
        user.wants_to_write = true;
        user.stage = Stage::Opening;
        Ok(false)
    }

    fn send(&mut self, place: Place) -> Option<Outcome> {
        let user = &mut self.users[place.0][place.1];
        let connection = user.connection.as_mut()?;
        if user.stage != Stage::Busy {
            user.stage = Stage::Busy;
            connection.begin();
        }
        let outcome = match connection.send(&self.targets[place.0]) {
            Progress::Failed(outcome) | Progress::Done(outcome) => outcome,
            progress => match self.await_socket(place, progress == Progress::Waiting) {
                Ok(()) => return None,
                Err(_) => return Some(self.give_up(place, ErrorKind::Reset)),
            },
        };
        self.end(place, false);
        Some(outcome)
    }

    fn wait(&mut self, most: Nanoseconds) -> usize {
        self.epoll.wait(most);
        self.epoll.ready()
    }

    fn event(&mut self, at: usize, news: &mut Vec<(Place, News)>) {
        let (key, writable) = self.epoll.event(at);
        let place = place(key);
        let user = self.user(place);
        let new = match user.stage {
            Stage::Idle => {
                user.keep_if_quiet();
                None
            }
            Stage::Opening => self.go_on_opening(place),
            Stage::Busy => {
                let unsent = writable && user.wants_to_write;
                let outcome = if unsent { self.send(place) } else { None };
                outcome.or_else(|| self.receive(place)).map(News::Ended)
            }
        };
        news.extend(new.map(|new| (place, new)));
    }

    fn give_up(&mut self, place: Place, error: ErrorKind) -> Outcome {
        let user = self.user(place);
        let outcome = match &user.connection {
            Some(connection) if user.stage == Stage::Busy => connection.give_up(error),
            _ => Outcome::failed(ErrorKind::Connect),
        };
        self.end(place, false);
        outcome
    }
}

fn key((target, user): Place) -> u64 {
    (target as u64) << 32 | user as u64
}

fn place(key: u64) -> Place {
    ((key >> 32) as usize, (key & 0xffff_ffff) as usize)
}
