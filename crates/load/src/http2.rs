// SPDX-License-Identifier: Apache-2.0
//! HTTP/2 of many users: each request is a stream, on a few connections that all share. The
//! crate h2 speaks the protocol; its futures are polled here by hand, when a socket has news or
//! a request is to be sent, so that no executor stands between a request and its times.

use crate::clock::Nanoseconds;
use crate::crew::Settings;
use crate::epoll::{Epoll, Interest};
use crate::link::Link;
use crate::response::Expected;
use crate::sample::{ErrorKind, Outcome};
use crate::stop;
use crate::stream::Stream;
use crate::wire::{News, Place, Wire};
use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Wake, Waker};
use std::time::{Duration, Instant};

pub struct Http2 {
    settings: Settings,
    epoll: Epoll,
    sides: Vec<Side>,
    /// Connections, by target and place, that are to go on without news of their sockets; those
    /// that [`Wire::wait`] has counted, and those since then.
    asked: [Vec<(usize, usize)>; 2],
    /// What was found out between events.
    late: Vec<(Place, News)>,
}

/// One target: its connections, and its users.
struct Side {
    /// Connections at their place, by which the events of their sockets name them.
    links: Vec<Option<Link>>,
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
    /// The link at this place has a stream for it.
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
                links: Vec::new(),
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
        let at = side.links.iter().position(Option::is_none).unwrap_or(side.links.len());
        let link = Link::open(&self.settings.targets[target])?;
        self.epoll.add(link.socket(), key(target, at), Interest::Both)?;
        if at == side.links.len() {
            side.links.push(None);
        }
        side.links[at] = Some(link);
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
    fn go_on(&mut self, target: usize, at: usize, news: &mut Vec<(Place, News)>) {
        loop {
            let Some(Some(link)) = self.sides[target].links.get_mut(at) else { return };
            let ended = link.go_on();
            let streams = self.follow_up(target, news);
            if let Some(error) = ended {
                self.lose(target, at, error, news);
                break;
            }
            // What the streams had to say to the server is still to be said.
            if streams == 0 {
                break;
            }
        }
        self.await_socket(target, at);
        let side = &mut self.sides[target];
        side.share_out(target, news);
        side.drop_those(Link::is_through);
    }

    /// Hears what servers have said on connections that nobody uses now, their end above all.
    fn hear(&mut self, target: usize) {
        let mut news = std::mem::take(&mut self.late);
        for at in 0..self.sides[target].links.len() {
            let link = &self.sides[target].links[at];
            if link.as_ref().is_some_and(|link| link.is_open() && link.streams == 0) {
                self.go_on(target, at, &mut news);
            }
        }
        self.late = news;
    }

    fn await_socket(&mut self, target: usize, at: usize) {
        let Some(link) = &mut self.sides[target].links[at] else { return };
        if let Some(unsent) = link.changed_interest() {
            let interest = if unsent { Interest::Both } else { Interest::Readable };
            // A socket that epoll does not take is found out by its time-outs.
            let _ = self.epoll.change(link.socket(), key(target, at), interest);
        }
    }

    /// Polls the streams that have news, and says how many that were.
    fn follow_up(&mut self, target: usize, news: &mut Vec<(Place, News)>) -> usize {
        let side = &mut self.sides[target];
        let mut polled = 0;
        loop {
            let Some(user) = lock(&side.woken).pop() else { return polled };
            polled += 1;
            if let Some(outcome) = side.poll(user, &self.settings.targets[target].expected) {
                side.end(user);
                news.push(((target, user), News::Ended(outcome)));
            }
        }
    }

    /// A connection has ended, and with it the streams on it.
    fn lose(&mut self, target: usize, at: usize, error: ErrorKind, news: &mut Vec<(Place, News)>) {
        let side = &mut self.sides[target];
        let was_open = side.links[at].take().is_some_and(|link| link.is_open());
        for user in 0..side.users.len() {
            let outcome = match &side.users[user].stage {
                Stage::Open(link) if *link == at => Outcome::failed(error),
                Stage::Busy(link, stream) if *link == at => stream.failed(error),
                _ => continue,
            };
            side.users[user].stage = Stage::Idle;
            news.push(((target, user), News::Ended(outcome)));
        }
        if was_open && !side.waiting.is_empty() {
            if let Err(error) = self.connect_all(target) {
                self.sides[target].turn_away(target, ErrorKind::of_opening(&error), news);
            }
        } else if self.sides[target].takers() == 0 {
            self.sides[target].turn_away(target, error, news);
        }
    }
}

impl Side {
    /// Connections that take new streams, or will.
    fn takers(&self) -> usize {
        self.links.iter().flatten().filter(|link| !link.is_leaving()).count()
    }

    /// The connection that has the fewest streams, if it can have one more.
    fn reserve(&mut self) -> Option<usize> {
        let able = |link: &mut Option<Link>| link.as_mut().is_some_and(Link::has_room);
        let mut best: Option<(usize, usize)> = None;
        for at in 0..self.links.len() {
            if able(&mut self.links[at]) {
                let streams = self.links[at].as_ref().map_or(0, |link| link.streams);
                best = best.into_iter().chain([(streams, at)]).min();
            }
        }
        let (_, at) = best?;
        self.links[at].as_mut()?.streams += 1;
        Some(at)
    }

    fn drop_those(&mut self, gone: impl Fn(&Link) -> bool) {
        for link in &mut self.links {
            if link.as_ref().is_some_and(&gone) {
                *link = None;
            }
        }
    }

    /// Nobody can serve those that wait.
    fn turn_away(&mut self, target: usize, error: ErrorKind, news: &mut Vec<(Place, News)>) {
        for user in std::mem::take(&mut self.waiting) {
            self.users[user].stage = Stage::Idle;
            news.push(((target, user), News::Ended(Outcome::failed(error))));
        }
    }

    /// Gives the streams that are to spare to those who wait for one.
    fn share_out(&mut self, target: usize, news: &mut Vec<(Place, News)>) {
        while !self.waiting.is_empty() {
            let Some(at) = self.reserve() else { return };
            if let Some(user) = self.waiting.pop_front() {
                self.users[user].stage = Stage::Open(at);
                news.push(((target, user), News::Open));
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

    /// The user's request is over; the server hears of it if it is not.
    fn end(&mut self, user: usize) {
        let (Stage::Open(at) | Stage::Busy(at, _)) = std::mem::take(&mut self.users[user].stage)
        else {
            return;
        };
        if let Some(link) = &mut self.links[at] {
            link.streams -= 1;
        }
    }
}

impl Wire for Http2 {
    fn prepare(&mut self, target: usize, _users: usize, patience: Duration) {
        let start = Instant::now();
        self.hear(target);
        if self.connect_all(target).is_err() {
            return;
        }
        let look_up = stop::LOOK_UP.as_nanos() as Nanoseconds;
        while self.sides[target].links.iter().flatten().any(|link| !link.is_open())
            && start.elapsed() < patience
            && !stop::asked()
        {
            let mut news = Vec::new();
            for event in 0..self.wait(look_up) {
                self.event(event, &mut news);
            }
        }
    }

    fn open(&mut self, place: Place, idle: bool) -> io::Result<bool> {
        let (target, user) = place;
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

    fn send(&mut self, place: Place) -> Option<Outcome> {
        let (target, user) = place;
        let side = &mut self.sides[target];
        let Stage::Open(at) = side.users[user].stage else { return None };
        let link = side.links[at].as_mut()?;
        match link.send(&self.settings.targets[target]) {
            Ok(stream) => side.users[user].stage = Stage::Busy(at, stream),
            Err(error) => {
                side.end(user);
                return Some(Outcome::failed(error));
            }
        }
        // Once, so that its waker is known.
        let outcome = side.poll(user, &self.settings.targets[target].expected);
        if outcome.is_some() {
            side.end(user);
        }
        // It goes out now. What else that brings is seen at the next event.
        let ended = side.links[at].as_mut().is_some_and(Link::push_out);
        if ended || !lock(&side.woken).is_empty() {
            self.asked[1].push((target, at));
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

    fn event(&mut self, at: usize, news: &mut Vec<(Place, News)>) {
        news.append(&mut self.late);
        if let Some(other) = at.checked_sub(self.epoll.ready()) {
            if let Some((target, link)) = self.asked[0].get(other).copied() {
                self.go_on(target, link, news);
            }
        } else {
            let (key, _) = self.epoll.event(at);
            self.go_on((key >> 32) as usize, (key & 0xffff_ffff) as usize, news);
        }
    }

    fn give_up(&mut self, (target, user): Place, error: ErrorKind) -> Outcome {
        let side = &mut self.sides[target];
        let outcome = match &side.users[user].stage {
            Stage::Busy(at, stream) => {
                // A connection on which nothing came for so long may have no other end any more.
                if let Some(link) = &mut side.links[*at]
                    && link.heard() == stream.heard
                {
                    link.leave();
                }
                stream.failed(error)
            }
            _ if side.links.iter().flatten().any(Link::is_open) => Outcome::failed(error),
            _ => Outcome::failed(ErrorKind::Connect),
        };
        if let Stage::Busy(at, _) = &side.users[user].stage {
            // The server is told that nobody wants the rest.
            self.asked[1].push((target, *at));
        }
        side.waiting.retain(|waiting| *waiting != user);
        side.end(user);
        side.drop_those(Link::is_through);
        if outcome.error == Some(ErrorKind::Connect) {
            side.drop_those(|link| !link.is_open());
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

fn key(target: usize, link: usize) -> u64 {
    (target as u64) << 32 | link as u64
}
