// SPDX-License-Identifier: Apache-2.0
//! Where programs come to hand their segments over.

use super::receivers::{Answer, Receivers};
use super::request::{Guest, NOT_UNDERSTOOD, io_error, received, refuse};
use super::socket::{self, Listening};
use crate::collector::quotas::descriptor_limit::Limit;
use crate::collector::quotas::payer::Payers;
use crate::epoll::Epoll;
use crate::program;
use std::collections::{HashMap, VecDeque};
use std::fmt::Display;
use std::io;
use std::mem;
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use tare_command::processes::is_readable;
use tare_command::{Complaints, Failure, ResultExt, said};
use tare_shm::{Refusal, peer};

const ROOT: u32 = 0;

/// Who comes is let in so many at a time.
const AT_ONCE: usize = 64;

/// Programs say at once what they want. Who does not is waited for so long, among so many.
const PATIENCE: Duration = Duration::from_secs(10);
const WAITING: usize = 256;

/// Descriptors that are left for what is opened for a moment, and for what a program hands over.
const RESERVE: u64 = 16;

pub struct Door {
    socket: Listening,
    open_for: OpenFor,
    /// Somebody comes, or one of those who wait says something.
    epoll: Epoll,
    /// Those who have said nothing yet, in the order in which they came.
    waiting: VecDeque<Waiting>,
    receivers: Receivers,
    /// Nobody can be let in.
    is_shut: bool,
    payers: Payers,
    complaints: Complaints,
}

struct Waiting {
    since: Instant,
    connection: UnixStream,
    peer: libc::ucred,
}

/// Whose programs are let in, besides those of the same user, by a collector that runs as root:
/// services give their workers to other users.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum OpenFor {
    Descendants,
    Everyone,
}

impl Door {
    /// A socket that a dead collector has left is replaced.
    pub fn open(path: &Path, open_for: OpenFor) -> Result<Self, Failure> {
        let what = || format!("--socket {}", path.display());
        if socket::clear(path) {
            return Err(Failure::input(format_args!(
                "{}: another collector listens there; stop it, \
                                                    or give another path",
                what()
            )));
        }
        let mode = if program::user() == ROOT { 0o666 } else { 0o600 };
        let socket = Listening::at(path, mode).or_input(what())?;
        socket.listener.set_nonblocking(true).or_failed(what())?;
        let epoll = Epoll::new().or_failed(what())?;
        epoll.add(socket.listener.as_raw_fd()).or_failed(what())?;
        Ok(Self {
            socket,
            open_for,
            epoll,
            waiting: VecDeque::new(),
            receivers: Receivers::default(),
            is_shut: false,
            payers: Payers::of_this_machine(),
            complaints: Complaints::default(),
        })
    }

    /// Absolute paths of its socket.
    pub fn paths(&self) -> Vec<PathBuf> {
        self.socket.paths()
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.socket.path
    }

    pub fn is_there(&self) -> bool {
        self.socket.is_there()
    }

    /// Becomes readable when somebody comes, or says something.
    pub fn fd(&self) -> RawFd {
        self.epoll.as_raw_fd()
    }

    /// Those who have said what they want.
    pub fn guests(&mut self) -> Vec<Guest> {
        let mut guests = Vec::new();
        let mut has_come = self.is_shut;
        for ready in self.epoll.ready(0) {
            if ready.fd == self.socket.listener.as_raw_fd() {
                has_come = true;
            } else if let Some(user) = self.receivers.user(ready.fd) {
                self.answers(user, &mut guests);
            } else {
                guests.extend(self.heard(ready.fd));
            }
        }
        if has_come {
            self.let_in(&mut guests);
        }
        let is_late = |one: &Waiting| one.since.elapsed() > PATIENCE;
        while self.waiting.front().is_some_and(is_late) {
            self.forget(0);
        }
        while self.waiting.len() > WAITING && self.dismiss() {}
        self.receivers.renew();
        guests
    }

    /// What the process has received that receives for this user.
    fn answers(&mut self, user: u32, guests: &mut Vec<Guest>) {
        for answer in self.receivers.answers(user, AT_ONCE) {
            match answer {
                Answer::Guest(guest) => guests.push(guest),
                Answer::Refused { connection, peer, is_understood: true } => {
                    refuse(&connection);
                    let text = format!(
                        "the segment of process {} is refused: {}",
                        peer.pid,
                        said(Refusal::NotOurs)
                    );
                    self.complaints.say(peer.uid, text);
                }
                Answer::Refused { peer, .. } => self.complain_of_message(&peer, NOT_UNDERSTOOD),
            }
        }
    }

    /// Closes a connection of any user.
    fn let_go(&mut self, connection: UnixStream, peer: &libc::ucred) {
        if peer.uid != program::user() {
            self.pass_on(connection, peer, false);
        }
    }

    /// To the process that receives for this user, or only closes for it.
    fn pass_on(&mut self, connection: UnixStream, peer: &libc::ucred, is_wanted: bool) {
        match self.receivers.take(self.payers.of(peer.uid), connection, is_wanted) {
            Ok(new) => new.into_iter().for_each(|fd| drop(self.epoll.add(fd))),
            Err(error) => self.complain_of_message(peer, error),
        }
    }

    fn forget(&mut self, place: usize) -> bool {
        let Some(Waiting { connection, peer, .. }) = self.waiting.remove(place) else {
            return false;
        };
        let _ = self.epoll.remove(connection.as_raw_fd());
        self.let_go(connection, &peer);
        true
    }

    pub fn payers(&self) -> &Payers {
        &self.payers
    }

    /// Closes the oldest silent connection of the user who has most of them, if there is one. A
    /// program that has the time comes again.
    fn dismiss(&mut self) -> bool {
        let silent = |one: &&Waiting| !is_readable(&one.connection);
        let payer = |one: &Waiting| self.payers.of(one.peer.uid);
        let mut counts: HashMap<u32, usize> = HashMap::new();
        self.waiting
            .iter()
            .filter(silent)
            .for_each(|one| *counts.entry(payer(one)).or_default() += 1);
        let most = counts.values().max();
        let of_most = |one: &Waiting| counts.get(&payer(one)) == most && silent(&one);
        let place = most.and_then(|_| self.waiting.iter().position(of_most));
        place.is_some_and(|place| self.forget(place))
    }

    /// What one says who has waited.
    fn heard(&mut self, fd: RawFd) -> Option<Guest> {
        let place = self.waiting.iter().position(|one| one.connection.as_raw_fd() == fd)?;
        let Waiting { connection, peer, .. } = self.waiting.remove(place)?;
        let _ = self.epoll.remove(fd);
        self.greet(connection, peer)
    }

    fn let_in(&mut self, guests: &mut Vec<Guest>) {
        for _ in 0..AT_ONCE {
            match self.accept() {
                Ok(None) => return self.shut(false),
                Ok(Some((connection, peer))) if self.admits(&peer) => {
                    guests.extend(self.greet(connection, peer));
                }
                Ok(Some((connection, peer))) => {
                    refuse(&connection);
                    self.let_go(connection, &peer);
                    self.complain_of(&peer);
                }
                // Who says nothing takes nobody else's place.
                Err(_) if self.dismiss() => {}
                Err(error) => {
                    if !self.is_shut {
                        let text = format_args!(
                            "new programs cannot connect: {error}. Connected programs are still \
                             served"
                        );
                        self.complaints.say(program::user(), text);
                    }
                    return self.shut(true);
                }
            }
        }
    }

    fn complain_of(&mut self, peer: &libc::ucred) {
        let own = program::user();
        let others = if own == ROOT { ", or a descendant of tare log run" } else { "" };
        let text = format_args!(
            "process {} of user {} is refused: expected user {own}{others}",
            peer.pid, peer.uid
        );
        self.complaints.say(peer.uid, text);
    }

    /// The next who has come. Nobody is taken in whose descriptors would find no room.
    fn accept(&self) -> io::Result<Option<(UnixStream, libc::ucred)>> {
        if !is_readable(&*self.socket.listener) {
            return Ok(None);
        }
        let lowest = self.socket.listener.try_clone()?.as_raw_fd() as u64;
        if lowest + RESERVE > Limit::get()?.end() {
            return Err(io::Error::from_raw_os_error(libc::EMFILE));
        }
        let (connection, _) = self.socket.listener.accept()?;
        let peer = peer::credentials(connection.as_raw_fd()).map_err(io_error)?;
        Ok(Some((connection, peer)))
    }

    /// A listener that nobody can be let in from would be readable all the time.
    fn shut(&mut self, is_shut: bool) {
        if is_shut != self.is_shut {
            let fd = self.socket.listener.as_raw_fd();
            let _ = if is_shut { self.epoll.remove(fd) } else { self.epoll.add(fd) };
            self.is_shut = is_shut;
        }
    }

    /// Whether this program is let in.
    fn admits(&self, peer: &libc::ucred) -> bool {
        let own = program::user();
        let is_open = || match self.open_for {
            OpenFor::Descendants => program::descends(peer.pid as u32, std::process::id()),
            OpenFor::Everyone => true,
        };
        peer.uid == own || own == ROOT && is_open()
    }

    fn complain_of_message(&mut self, peer: &libc::ucred, error: impl Display) {
        let text = format_args!("process {} could not connect: {error}", peer.pid);
        self.complaints.say(peer.uid, text);
    }

    /// Who has not said yet what it wants waits.
    fn greet(&mut self, connection: UnixStream, peer: libc::ucred) -> Option<Guest> {
        let is_foreign = peer.uid != program::user();
        if is_foreign && is_readable(&connection) {
            self.pass_on(connection, &peer, true);
            return None;
        }
        let came =
            if is_foreign { Err(io::ErrorKind::WouldBlock.into()) } else { received(&connection) };
        match came {
            Ok(wish) => {
                let user = self.payers.of(peer.uid);
                Some(Guest { wish, pid: peer.pid as u32, user, connection })
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                if self.epoll.add(connection.as_raw_fd()).is_ok() {
                    self.waiting.push_back(Waiting { since: Instant::now(), connection, peer });
                }
                None
            }
            // It has only looked whether we are here.
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => None,
            Err(error) => {
                self.complain_of_message(&peer, error);
                None
            }
        }
    }
}

impl Drop for Door {
    /// The kernel closes connections that were not read when the process exits: then no close
    /// blocks.
    fn drop(&mut self) {
        self.waiting.drain(..).for_each(|one| mem::forget(one.connection));
    }
}
