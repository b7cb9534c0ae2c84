// SPDX-License-Identifier: Apache-2.0
//! Where programs come to hand their segments over.

use super::listening_socket::{self, Listening};
use super::receivers::{Answer, Receivers};
use super::request::{Client, NOT_UNDERSTOOD, io_error, received, refuse};
use crate::collector::quotas::descriptor_limit::DescriptorLimit;
use crate::collector::quotas::subordinate_ids::SubordinateIds;
use crate::epoll::Epoll;
use crate::procfs;
use std::collections::{HashMap, VecDeque};
use std::fmt::Display;
use std::io;
use std::mem;
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use tare_command::processes::{self, is_readable};
use tare_command::{Failure, ResultExt, SegmentError, UserWarnings};
use tare_shm::{Refusal, peer};

const ROOT: u32 = 0;

/// Who comes is let in so many at a time.
const AT_ONCE: usize = 64;

/// Programs say at once what they want. Who does not is waited for so long, among so many.
const PATIENCE: Duration = Duration::from_secs(10);
const MOST_PENDING: usize = 256;

/// Descriptors that are left for what is opened for a moment, and for what a program hands over.
const RESERVE: u64 = 16;

/// Descriptors that a program takes besides its connection, once it is served.
const UNTIL_SERVED: u64 = 2;

pub struct Acceptor {
    socket: Listening,
    admission: Admission,
    /// Somebody comes, or one of those who wait says something.
    epoll: Epoll,
    /// Those who have said nothing yet, in the order in which they came.
    pending: VecDeque<Pending>,
    receivers: Receivers,
    /// Nobody can be let in.
    is_paused: bool,
    subordinate_ids: SubordinateIds,
    user_warnings: UserWarnings,
}

struct Pending {
    since: Instant,
    connection: UnixStream,
    peer: libc::ucred,
}

/// Whose programs are let in, besides those of the same user, by a collector that runs as root:
/// services give their workers to other users.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Admission {
    Descendants,
    Everyone,
}

impl Acceptor {
    /// A socket that a dead collector has left is replaced.
    pub fn open(path: &Path, admission: Admission) -> Result<Self, Failure> {
        let what = || format!("--socket {}", path.display());
        if listening_socket::clear(path) {
            return Err(Failure::input(format_args!(
                "{}: another collector listens there; stop it, \
                                                    or give another path",
                what()
            )));
        }
        let mode = if procfs::user() == ROOT { 0o666 } else { 0o600 };
        let socket = Listening::at(path, mode).or_input(what())?;
        socket.listener.set_nonblocking(true).or_failed(what())?;
        let epoll = Epoll::new().or_failed(what())?;
        epoll.add(socket.listener.as_raw_fd()).or_failed(what())?;
        Ok(Self {
            socket,
            admission,
            epoll,
            pending: VecDeque::new(),
            receivers: Receivers::default(),
            is_paused: false,
            subordinate_ids: SubordinateIds::of_this_machine(),
            user_warnings: UserWarnings::default(),
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
    pub fn clients(&mut self) -> Vec<Client> {
        let mut clients = Vec::new();
        let mut has_come = self.is_paused;
        for ready in self.epoll.ready(0) {
            if ready.fd == self.socket.listener.as_raw_fd() {
                has_come = true;
            } else if let Some(user) = self.receivers.user(ready.fd) {
                self.answers(user, &mut clients);
            } else {
                clients.extend(self.read_pending(ready.fd));
            }
        }
        if has_come {
            self.accept_all(&mut clients);
        }
        let is_late = |pending: &Pending| pending.since.elapsed() > PATIENCE;
        while self.pending.front().is_some_and(is_late) {
            self.forget(0);
        }
        while self.pending.len() > MOST_PENDING && self.evict() {}
        self.receivers.renew();
        clients
    }

    /// What the process has received that receives for this user.
    fn answers(&mut self, user: u32, clients: &mut Vec<Client>) {
        for answer in self.receivers.answers(user, AT_ONCE) {
            match answer {
                Answer::Client(client) => clients.push(client),
                Answer::Refused { connection, peer, is_understood: true } => {
                    refuse(&connection);
                    let text = format!(
                        "the segment of process {} is refused: {}",
                        peer.pid,
                        SegmentError::Refused(Refusal::NotOurs)
                    );
                    self.warn(peer.uid, text);
                }
                Answer::Refused { peer, .. } => self.warn_of_message(&peer, NOT_UNDERSTOOD),
            }
        }
    }

    /// Closes a connection of any user.
    fn close(&mut self, connection: UnixStream, peer: &libc::ucred) {
        if !procfs::is_own(peer.uid) {
            self.delegate(connection, peer, false);
        }
    }

    /// To the process that receives for this user, or only closes for it.
    fn delegate(&mut self, connection: UnixStream, peer: &libc::ucred, is_wanted: bool) {
        match self.receivers.take(self.subordinate_ids.of(peer.uid), connection, is_wanted) {
            Ok(new) => new.into_iter().for_each(|fd| drop(self.epoll.add(fd))),
            Err(error) => self.warn_of_message(peer, error),
        }
    }

    fn forget(&mut self, place: usize) -> bool {
        let Some(Pending { connection, peer, .. }) = self.pending.remove(place) else {
            return false;
        };
        let _ = self.epoll.remove(connection.as_raw_fd());
        self.close(connection, &peer);
        true
    }

    pub fn subordinate_ids(&self) -> &SubordinateIds {
        &self.subordinate_ids
    }

    /// Closes the oldest silent connection of the user who has most of them, if there is one. A
    /// program that has the time comes again.
    fn evict(&mut self) -> bool {
        let silent = |pending: &&Pending| !is_readable(&pending.connection);
        let payer = |pending: &Pending| self.subordinate_ids.of(pending.peer.uid);
        let mut counts: HashMap<u32, usize> = HashMap::new();
        self.pending
            .iter()
            .filter(silent)
            .for_each(|pending| *counts.entry(payer(pending)).or_default() += 1);
        let most = counts.values().max();
        let of_most = |pending: &Pending| counts.get(&payer(pending)) == most && silent(&pending);
        let place = most.and_then(|_| self.pending.iter().position(of_most));
        place.is_some_and(|place| self.forget(place))
    }

    /// What one says who has waited.
    fn read_pending(&mut self, fd: RawFd) -> Option<Client> {
        let place = self.pending.iter().position(|pending| pending.connection.as_raw_fd() == fd)?;
        let Pending { connection, peer, .. } = self.pending.remove(place)?;
        let _ = self.epoll.remove(fd);
        self.handshake(connection, peer)
    }

    fn accept_all(&mut self, clients: &mut Vec<Client>) {
        for _ in 0..AT_ONCE {
            match self.accept(clients.len()) {
                Ok(None) => return self.pause(false),
                Ok(Some((connection, peer))) if self.admits(&connection, &peer) => {
                    clients.extend(self.handshake(connection, peer));
                }
                Ok(Some((connection, peer))) => {
                    refuse(&connection);
                    self.close(connection, &peer);
                    self.warn_of_user(&peer);
                }
                // Who says nothing takes nobody else's place.
                Err(_) if self.evict() => {}
                Err(error) => {
                    if !self.is_paused {
                        let text = format_args!(
                            "new programs cannot connect: {error}. Connected programs are still \
                             served"
                        );
                        self.user_warnings.warn(procfs::user(), text);
                    }
                    return self.pause(true);
                }
            }
        }
    }

    /// One user has one limit of lines for all subordinate IDs.
    fn warn(&mut self, user: u32, what: impl Display) {
        self.user_warnings.warn(self.subordinate_ids.of(user), what);
    }

    fn warn_of_user(&mut self, peer: &libc::ucred) {
        let own = procfs::user();
        let expected = if own == ROOT {
            format!("expected user {own}, or a descendant of tare log run")
        } else if peer.uid == own {
            "all users that this user namespace does not map have this ID. Run the collector as a \
             user that it maps"
                .to_owned()
        } else {
            format!("expected user {own}")
        };
        let text = format_args!("process {} of user {} is refused: {expected}", peer.pid, peer.uid);
        self.warn(peer.uid, text);
    }

    /// Accepts the next connection. Fails with EMFILE if the limit has no room for its descriptors
    /// beside those of `unserved` clients and of connections that are pending.
    fn accept(&self, unserved: usize) -> io::Result<Option<(UnixStream, libc::ucred)>> {
        if !is_readable(&*self.socket.listener) {
            return Ok(None);
        }
        let lowest = self.socket.listener.try_clone()?.as_raw_fd() as u64;
        let expected = UNTIL_SERVED * (unserved + self.pending.len()) as u64;
        if lowest + expected + RESERVE > DescriptorLimit::get()?.end() {
            return Err(io::Error::from_raw_os_error(libc::EMFILE));
        }
        let (connection, _) = self.socket.listener.accept()?;
        let peer = peer::credentials(connection.as_raw_fd()).map_err(io_error)?;
        Ok(Some((connection, peer)))
    }

    /// A listener that nobody can be let in from would be readable all the time.
    fn pause(&mut self, is_paused: bool) {
        if is_paused != self.is_paused {
            let fd = self.socket.listener.as_raw_fd();
            let _ = if is_paused { self.epoll.remove(fd) } else { self.epoll.add(fd) };
            self.is_paused = is_paused;
        }
    }

    /// Whether this program is let in.
    fn admits(&self, connection: &UnixStream, peer: &libc::ucred) -> bool {
        let own = procfs::user();
        let is_open = || match self.admission {
            Admission::Descendants => is_descendant(connection, peer.pid as u32),
            Admission::Everyone => true,
        };
        procfs::is_own(peer.uid) || own == ROOT && is_open()
    }

    fn warn_of_message(&mut self, peer: &libc::ucred, error: impl Display) {
        let text = format_args!("process {} could not connect: {error}", peer.pid);
        self.warn(peer.uid, text);
    }

    /// Who has not said yet what it wants waits.
    fn handshake(&mut self, connection: UnixStream, peer: libc::ucred) -> Option<Client> {
        let is_foreign = !procfs::is_own(peer.uid);
        if is_foreign && is_readable(&connection) {
            self.delegate(connection, &peer, true);
            return None;
        }
        let came =
            if is_foreign { Err(io::ErrorKind::WouldBlock.into()) } else { received(&connection) };
        match came {
            Ok(request) => {
                let user = self.subordinate_ids.of(peer.uid);
                Some(Client { request, pid: peer.pid as u32, user, connection })
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                if self.epoll.add(connection.as_raw_fd()).is_ok() {
                    self.pending.push_back(Pending { since: Instant::now(), connection, peer });
                }
                None
            }
            // It has only looked whether we are here.
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => None,
            Err(error) => {
                self.warn_of_message(&peer, error);
                None
            }
        }
    }
}

impl Drop for Acceptor {
    /// The kernel closes connections that were not read when the process exits: then no close
    /// blocks.
    fn drop(&mut self) {
        self.pending.drain(..).for_each(|pending| mem::forget(pending.connection));
    }
}

/// Whether the process that connected, as `pid`, descends from this one.
fn is_descendant(connection: &UnixStream, pid: u32) -> bool {
    let Ok(process) = processes::peer(connection) else { return false };
    procfs::descends(pid, std::process::id()) && processes::has_its_pid(&process)
}
