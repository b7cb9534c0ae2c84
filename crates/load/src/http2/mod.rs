// SPDX-License-Identifier: Apache-2.0
//! HTTP/2 of many users: each request is a stream, on a few connections that all share. The
//! crate h2 speaks the protocol; its futures are polled here by hand, when a socket has news or
//! a request is to be sent, so that no executor stands between a request and its times.

pub mod connection;
pub mod stream;

use crate::clock::Nanoseconds;
use crate::http::response::Expected;
use crate::net::epoll::{Epoll, Interest};
use crate::net::transport::{Events, RequestSlot, Transport, TransportEvent};
use crate::record::sample::{ErrorKind, Outcome};
use crate::stop;
use crate::workers::Settings;
use connection::Http2Connection;
use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Wake, Waker};
use std::time::{Duration, Instant};
use stream::Stream;

pub struct Http2 {
    settings: Settings,
    epoll: Epoll,
    sides: Vec<Side>,
    /// Connections, by target and number, that are to go on without news of their sockets; those
    /// that [`Transport::wait`] has counted, and those since then.
    asked: [Vec<(usize, usize)>; 2],
    /// What was found out between events.
    late: Events,
}

/// One target: its connections, and its users.
struct Side {
    /// Connections by number, by which the events of their sockets name them. No number is used
    /// again: news of one that is gone are not another's.
    connections: BTreeMap<usize, Http2Connection>,
    /// Connections that were ever made.
    made: usize,
    /// The most that take new streams; those that the server told to end come on top.
    most: usize,
    users: Vec<User>,
    /// Users without a connection that has a stream to spare, in the order in which they came.
    waiting: VecDeque<usize>,
    woken: Woken,
}

struct User {
    stage: Stage,
    waker: Waker,
}

#[derive(Default)]
enum Stage {
    #[default]
    Idle,
    Waiting,
    /// The connection of this number has a stream for it.
    Open(usize),
    Busy(usize, Stream),
}

/// Users whose streams have news.
type Woken = Arc<Mutex<Vec<usize>>>;

struct Alarm {
    user: usize,
    woken: Woken,
}

impl Wake for Alarm {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        lock(&self.woken).push(self.user);
    }
}

impl Http2 {
    /// Of so many users, on so many connections, for each target.
    pub fn new(settings: Settings, users: usize, connections: usize) -> io::Result<Self> {
        let side = |_| {
            let woken = Woken::default();
            let user = |user| User {
                stage: Stage::Idle,
                waker: Waker::from(Arc::new(Alarm { user, woken: woken.clone() })),
            };
            Side {
                users: (0..users).map(user).collect(),
                connections: BTreeMap::new(),
                made: 0,
                most: connections,
                waiting: VecDeque::new(),
                woken: woken.clone(),
            }
        };
        let sides = (0..settings.targets.len()).map(side).collect();
        let (asked, late) = Default::default();
        Ok(Self { settings, epoll: Epoll::new()?, sides, asked, late })
    }

    /// Makes one more connection.
    fn connect(&mut self, target: usize) -> io::Result<()> {
        let side = &mut self.sides[target];
        let connection = Http2Connection::open(&self.settings.targets[target])?;
        self.epoll.add(connection.socket(), key(target, side.made), Interest::Both)?;
        side.connections.insert(side.made, connection);
        side.made += 1;
        Ok(())
    }

    /// Makes connections until as many as there may be are there, or on their way.
    fn connect_all(&mut self, target: usize) -> io::Result<()> {
        while self.sides[target].takers() < self.sides[target].most {
            self.connect(target)?;
        }
        Ok(())
    }

    /// Goes on with one connection, and with the streams that this has brought forward.
    fn go_on(&mut self, target: usize, at: usize, events: &mut Events) {
        let Some(connection) = self.sides[target].connections.get_mut(&at) else { return };
        let was_open = connection.is_open();
        let mut ended = connection.go_on();
        if connection.has_more() {
            self.ask(target, at);
        }
        while self.follow_up(target, events) > 0
            && ended.is_none()
            && let Some(connection) = self.sides[target].connections.get_mut(&at)
        {
            // What the streams had to say to the server.
            ended = connection.push_out();
        }
        if let Some(error) = ended {
            self.sides[target].lose(target, at, error, events);
            if was_open {
                self.connect_for_the_waiting(target, events);
            } else if self.sides[target].takers() == 0 {
                self.sides[target].turn_away(target, error, events);
            }
            return;
        }
        self.await_socket(target, at);
        let side = &mut self.sides[target];
        side.share_out(target, events);
        side.connections.retain(|_, connection| !connection.is_through());
        self.connect_for_the_waiting(target, events);
    }

    /// Has a connection go on at the next turn.
    fn ask(&mut self, target: usize, at: usize) {
        if !self.asked[1].contains(&(target, at)) {
            self.asked[1].push((target, at));
        }
    }

    /// Hears what servers have said on connections that nobody uses now, their end above all.
    fn hear(&mut self, target: usize) {
        let unused = |(at, connection): (&usize, &Http2Connection)| {
            (connection.is_open() && connection.streams == 0).then_some(*at)
        };
        let unused: Vec<_> = self.sides[target].connections.iter().filter_map(unused).collect();
        let mut events = std::mem::take(&mut self.late);
        for at in unused {
            self.go_on(target, at, &mut events);
        }
        self.late = events;
    }

    fn await_socket(&mut self, target: usize, at: usize) {
        let Some(connection) = self.sides[target].connections.get_mut(&at) else { return };
        if let Some(unsent) = connection.changed_interest() {
            let interest = if unsent { Interest::Both } else { Interest::Readable };
            // A socket that epoll does not take is found out by its time-outs.
            let _ = self.epoll.change(connection.socket(), key(target, at), interest);
        }
    }

    /// Polls the streams that have news, and says how many that were.
    fn follow_up(&mut self, target: usize, events: &mut Events) -> usize {
        let side = &mut self.sides[target];
        let mut polled = 0;
        loop {
            let Some(user) = lock(&side.woken).pop() else { return polled };
            polled += 1;
            if let Some(outcome) = side.poll(user, &self.settings.targets[target].stream.expected) {
                side.end(user);
                events.push(((target, user), TransportEvent::Ended(outcome)));
            }
        }
    }

    /// Those that wait for a stream may need a connection in the place of one that ends.
    fn connect_for_the_waiting(&mut self, target: usize, events: &mut Events) {
        if !self.sides[target].waiting.is_empty()
            && let Err(error) = self.connect_all(target)
        {
            self.sides[target].turn_away(target, ErrorKind::of_opening(&error), events);
        }
    }
}

impl Side {
    /// Connections that take new streams, or will.
    fn takers(&self) -> usize {
        self.connections.values().filter(|connection| !connection.is_leaving()).count()
    }

    /// The connection that has the fewest streams, if it can have one more.
    fn reserve(&mut self) -> Option<usize> {
        let able = self
            .connections
            .iter_mut()
            .filter_map(|(at, connection)| connection.has_room().then_some((at, connection)));
        let (at, connection) = able.min_by_key(|(_, connection)| connection.streams)?;
        connection.streams += 1;
        Some(*at)
    }

    /// A connection has ended, and with it the streams on it.
    fn lose(&mut self, target: usize, at: usize, error: ErrorKind, events: &mut Events) {
        self.connections.remove(&at);
        for (number, user) in self.users.iter_mut().enumerate() {
            let outcome = match &user.stage {
                Stage::Open(connection) if *connection == at => Outcome::failed(error),
                Stage::Busy(connection, stream) if *connection == at => stream.failed(error),
                _ => continue,
            };
            user.stage = Stage::Idle;
            events.push(((target, number), TransportEvent::Ended(outcome)));
        }
    }

    /// Nobody can serve those that wait.
    fn turn_away(&mut self, target: usize, error: ErrorKind, events: &mut Events) {
        for user in std::mem::take(&mut self.waiting) {
            self.users[user].stage = Stage::Idle;
            events.push(((target, user), TransportEvent::Ended(Outcome::failed(error))));
        }
    }

    /// Gives the streams that are to spare to those who wait for one.
    fn share_out(&mut self, target: usize, events: &mut Events) {
        while !self.waiting.is_empty() {
            let Some(at) = self.reserve() else { return };
            if let Some(user) = self.waiting.pop_front() {
                self.users[user].stage = Stage::Open(at);
                events.push(((target, user), TransportEvent::Open));
            }
        }
    }

    fn poll(&mut self, user: usize, expected: &Expected) -> Option<Outcome> {
        let User { stage, waker } = &mut self.users[user];
        match stage {
            Stage::Busy(_, stream) => stream.poll(&mut Context::from_waker(waker), expected),
            _ => None,
        }
    }

    /// The user's request is over; the connection that it had, if any, still has to tell the
    /// server where that does not know it.
    fn end(&mut self, user: usize) -> Option<usize> {
        let (Stage::Open(at) | Stage::Busy(at, _)) = std::mem::take(&mut self.users[user].stage)
        else {
            return None;
        };
        self.connections.get_mut(&at)?.streams -= 1;
        Some(at)
    }
}

impl Transport for Http2 {
    fn prepare(&mut self, target: usize, _users: usize, patience: Duration) {
        let start = Instant::now();
        self.hear(target);
        if self.connect_all(target).is_err() {
            return;
        }
        let look_up = stop::LOOK_UP.as_nanos() as Nanoseconds;
        while self.sides[target].connections.values().any(|connection| !connection.is_open())
            && start.elapsed() < patience
            && !stop::asked()
        {
            let mut events = Vec::new();
            for event in 0..self.wait(look_up) {
                self.event(event, &mut events);
            }
        }
    }

    fn open(&mut self, slot: RequestSlot, idle: bool) -> io::Result<bool> {
        let (target, user) = slot;
        if idle {
            self.hear(target);
        }
        let side = &mut self.sides[target];
        if side.waiting.is_empty()
            && let Some(at) = side.reserve()
        {
            side.users[user].stage = Stage::Open(at);
            return Ok(true);
        }
        self.connect_all(target)?;
        let side = &mut self.sides[target];
        side.users[user].stage = Stage::Waiting;
        side.waiting.push_back(user);
        Ok(false)
    }

    fn send(&mut self, slot: RequestSlot) -> Option<Outcome> {
        let (target, user) = slot;
        let side = &mut self.sides[target];
        let Stage::Open(at) = side.users[user].stage else { return None };
        let connection = side.connections.get_mut(&at)?;
        match connection.send(&self.settings.targets[target]) {
            Ok(stream) => side.users[user].stage = Stage::Busy(at, stream),
            Err(error) => {
                side.end(user);
                return Some(Outcome::failed(error));
            }
        }
        // Once, so that its waker is known.
        let outcome = side.poll(user, &self.settings.targets[target].stream.expected);
        if outcome.is_some() {
            side.end(user);
        }
        // It goes out now. What else that brings is seen at the next event.
        let ended =
            side.connections.get_mut(&at).is_some_and(|connection| connection.push_out().is_some());
        if ended || !lock(&side.woken).is_empty() {
            self.ask(target, at);
        }
        self.await_socket(target, at);
        outcome
    }

    fn wait(&mut self, most: Nanoseconds) -> usize {
        self.asked[0].clear();
        self.asked.swap(0, 1);
        let others = self.asked[0].len() + usize::from(!self.late.is_empty());
        self.epoll.wait(if others > 0 { 0 } else { most });
        self.epoll.ready() + others
    }

    fn event(&mut self, at: usize, events: &mut Events) {
        events.append(&mut self.late);
        if let Some(other) = at.checked_sub(self.epoll.ready()) {
            if let Some((target, connection)) = self.asked[0].get(other).copied() {
                self.go_on(target, connection, events);
            }
        } else {
            let (key, _) = self.epoll.event(at);
            self.go_on((key >> 32) as usize, (key & 0xffff_ffff) as usize, events);
        }
    }

    fn give_up(&mut self, (target, user): RequestSlot, error: ErrorKind) -> Outcome {
        let side = &mut self.sides[target];
        let outcome = match &side.users[user].stage {
            Stage::Busy(at, stream) => {
                // A connection on which nothing came for so long may have no other end any more.
                if let Some(connection) = side.connections.get_mut(at)
                    && connection.heard() == stream.heard
                {
                    connection.leave();
                }
                stream.failed(error)
            }
            _ if side.connections.values().any(Http2Connection::is_open) => Outcome::failed(error),
            _ => Outcome::failed(ErrorKind::Connect),
        };
        side.waiting.retain(|waiting| *waiting != user);
        if let Some(at) = side.end(user) {
            // The server is told that nobody wants the rest.
            self.ask(target, at);
        }
        if outcome.error == Some(ErrorKind::Connect) {
            let side = &mut self.sides[target];
            side.connections.retain(|_, connection| connection.is_open());
            if !side.waiting.is_empty() {
                // An error here is one of those that wait, when their time is over.
                let _ = self.connect_all(target);
            }
        }
        outcome
    }
}

fn lock(woken: &Woken) -> MutexGuard<'_, Vec<usize>> {
    woken.lock().unwrap_or_else(PoisonError::into_inner)
}

fn key(target: usize, connection: usize) -> u64 {
    (target as u64) << 32 | connection as u64
}

#[cfg(test)]
#[path = "http2_test.rs"]
mod tests;
