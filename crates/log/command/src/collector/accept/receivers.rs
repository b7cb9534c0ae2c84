// SPDX-License-Identifier: Apache-2.0
//! The processes that receive the descriptors of other users, one per user (see `receiver.rs`).
//! If a user blocks its process, only programs of this user wait.

use super::receiver::{
    ANSWER, BORROW, CLOSE, NAME, NO_SEGMENT, NOT_UNDERSTOOD, RECEIVE, SEGMENT, SERVE,
};
use super::request::{Client, Request};
use std::collections::HashMap;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use tare_log_segment::Identity;
use tare_shm::{peer, rights};

/// A process that was not needed for so long ends.
const IDLE: Duration = Duration::from_secs(10);

/// Bytes of connections on their way to a process: some thousand connections.
const BUFFER: libc::c_int = 4 << 20;

#[derive(Default)]
pub struct Receivers {
    running: HashMap<u32, Receiver>,
    /// Those that were killed. `close` of a file of FUSE goes on after that.
    killed: Vec<(u32, Child)>,
}

struct Receiver {
    socket: OwnedFd,
    process: Child,
    used: Instant,
    /// Came before its connection.
    segment: Option<OwnedFd>,
    /// The process before it could not be ended: this one receives nothing.
    only_closes: bool,
}

/// What a process has received.
pub enum Answer {
    Client(Client),
    /// What came was no segment, or nothing that programs send.
    Refused {
        connection: UnixStream,
        peer: libc::ucred,
        is_understood: bool,
    },
}

impl Receivers {
    /// Passes a connection on, to be received from (the descriptor to wait at is new if it is
    /// returned) or to be closed.
    pub fn take(
        &mut self,
        user: u32,
        connection: UnixStream,
        is_wanted: bool,
    ) -> io::Result<Option<RawFd>> {
        let mut new = None;
        for _ in 0..2 {
            if !self.running.contains_key(&user) {
                let receiver = self.start(user)?;
                new = Some(receiver.socket.as_raw_fd());
                self.running.insert(user, receiver);
            }
            let Some(receiver) = self.running.get_mut(&user) else { break };
            receiver.used = Instant::now();
            let what = if is_wanted && !receiver.only_closes { RECEIVE } else { CLOSE };
            match rights::send_with(receiver.socket.as_raw_fd(), &[what], connection.as_raw_fd()) {
                Ok(()) => return Ok(new),
                // It has ended, or has been blocked for thousands of connections.
                Err(_) => self.end(user),
            }
        }
        Err(io::ErrorKind::BrokenPipe.into())
    }

    fn start(&mut self, user: u32) -> io::Result<Receiver> {
        self.reap();
        let (socket, other) = pair()?;
        let process = Command::new("/proc/self/exe")
            .arg0(NAME)
            .stdin(Stdio::from(other))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()?;
        let only_closes = self.killed.iter().any(|(of, _)| *of == user);
        Ok(Receiver { socket, process, used: Instant::now(), segment: None, only_closes })
    }

    fn end(&mut self, user: u32) {
        if let Some(mut receiver) = self.running.remove(&user) {
            let _ = receiver.process.kill();
            self.killed.push((user, receiver.process));
        }
    }

    fn reap(&mut self) {
        self.killed.retain_mut(|(_, process)| matches!(process.try_wait(), Ok(None)));
    }

    /// Ends processes that were not needed for some time.
    pub fn renew(&mut self) {
        let is_idle =
            |(user, receiver): (&u32, &Receiver)| (receiver.used.elapsed() > IDLE).then_some(*user);
        let idle: Vec<u32> = self.running.iter().filter_map(is_idle).collect();
        idle.into_iter().for_each(|user| self.end(user));
        self.reap();
    }

    /// The user for whom the process at this descriptor receives.
    pub fn user(&self, fd: RawFd) -> Option<u32> {
        let is_there = |(user, receiver): (&u32, &Receiver)| {
            (receiver.socket.as_raw_fd() == fd).then_some(*user)
        };
        self.running.iter().find_map(is_there)
    }

    /// What the process of this user has received, some of it if it is much.
    pub fn answers(&mut self, user: u32, most: usize) -> Vec<Answer> {
        let mut answers = Vec::new();
        while answers.len() < most
            && let Some(receiver) = self.running.get_mut(&user)
        {
            match receiver.answer(user) {
                Ok(answer) => answers.extend(answer),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(_) => self.end(user),
            }
        }
        answers
    }
}

impl Receiver {
    fn answer(&mut self, user: u32) -> io::Result<Option<Answer>> {
        let mut bytes = [0; ANSWER];
        let error = |error: tare_shm::Errno| io::Error::from_raw_os_error(error.0);
        let message = rights::receive(self.socket.as_raw_fd(), &mut bytes).map_err(error)?;
        let fd = message.fd.ok_or(io::ErrorKind::UnexpectedEof)?;
        // SAFETY: the kernel has just made it, for us alone.
        let fd = unsafe { OwnedFd::from_raw_fd(fd) };
        let [what, identity @ ..] = bytes;
        if what == SEGMENT {
            self.segment = Some(fd);
            return Ok(None);
        }
        let connection = UnixStream::from(fd);
        let peer = peer::credentials(connection.as_raw_fd()).map_err(error)?;
        let request = match (what, self.segment.take()) {
            (SERVE, Some(segment)) => Request::Serve(segment),
            (BORROW, _) => Request::Borrow(Identity::from_bytes(identity)),
            (NO_SEGMENT | NOT_UNDERSTOOD, _) => {
                let is_understood = what == NO_SEGMENT;
                return Ok(Some(Answer::Refused { connection, peer, is_understood }));
            }
            _ => return Err(io::ErrorKind::InvalidData.into()),
        };
        Ok(Some(Answer::Client(Client { request, pid: peer.pid as u32, user, connection })))
    }
}

impl Drop for Receivers {
    fn drop(&mut self) {
        self.running.values_mut().for_each(|receiver| drop(receiver.process.kill()));
    }
}

/// Two ends of a connection for messages.
fn pair() -> io::Result<(OwnedFd, OwnedFd)> {
    let mut ends = [-1; 2];
    let kind = libc::SOCK_SEQPACKET | libc::SOCK_CLOEXEC;
    // SAFETY: there are two places.
    if unsafe { libc::socketpair(libc::AF_UNIX, kind, 0, ends.as_mut_ptr()) } != 0 {
        return Err(io::Error::last_os_error());
    }
    let (name, room, size) = (libc::SO_SNDBUFFORCE, BUFFER, size_of_val(&BUFFER));
    for end in ends {
        // SAFETY: the kernel reads one number.
        unsafe {
            let room = (&raw const room).cast();
            libc::setsockopt(end, libc::SOL_SOCKET, name, room, size as libc::socklen_t);
        }
    }
    // SAFETY: new descriptors, owned by nobody else.
    Ok(unsafe { (OwnedFd::from_raw_fd(ends[0]), OwnedFd::from_raw_fd(ends[1])) })
}
