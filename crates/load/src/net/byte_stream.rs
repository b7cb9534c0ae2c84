// SPDX-License-Identifier: Apache-2.0
//! What carries a connection's bytes: a socket, in clear text or under TLS.

use super::socket::{Socket, Waiting};
use super::tls::{Session, Tls};
use crate::record::sample::ErrorKind;
use crate::stop;
use std::io;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

#[derive(Debug)]
pub struct ByteStream {
    socket: Socket,
    tls: Option<Box<Session>>,
}

impl ByteStream {
    /// Connects, and shakes hands. A polled stream is open once [`ByteStream::go_on_opening`]
    /// says so. That the generator itself lacks something for it is no error of the service: it
    /// ends the work.
    pub fn open(address: &SocketAddr, tls: Option<&Tls>, waiting: Waiting) -> io::Result<Self> {
        Self::connect(address, tls, waiting).inspect_err(|error| {
            if let Some(lack) = lack(error) {
                stop::fail(lack);
            }
        })
    }

    /// Looks whether there is somebody at this address, one of several perhaps.
    pub fn probe(address: &SocketAddr, tls: Option<&Tls>, most: Duration) -> io::Result<()> {
        Self::connect(address, tls, Waiting::Blocking { connect: most }).map(drop)
    }

    fn connect(address: &SocketAddr, tls: Option<&Tls>, waiting: Waiting) -> io::Result<Self> {
        let start = Instant::now();
        let socket = Socket::connect(address, waiting)?;
        let tls = tls.map(|tls| tls.session().map(Box::new)).transpose()?;
        let mut byte_stream = Self { socket, tls };
        if let Waiting::Blocking { connect } = waiting {
            byte_stream.shake_hands_within(connect, start)?;
        }
        Ok(byte_stream)
    }

    fn shake_hands_within(&mut self, most: Duration, start: Instant) -> io::Result<()> {
        let Some(session) = &mut self.tls else { return Ok(()) };
        loop {
            let left = most.saturating_sub(start.elapsed());
            if left.is_zero() {
                let what = format!("no TLS handshake within {most:?}");
                return Err(io::Error::new(io::ErrorKind::TimedOut, what));
            }
            if stop::asked() {
                return Err(io::ErrorKind::Interrupted.into());
            }
            self.socket.wait_at_most(left)?;
            match session.shake_hands(&self.socket) {
                Ok(true) => return Ok(()),
                Err(error) if error.kind() != io::ErrorKind::Interrupted => return Err(error),
                Ok(false) | Err(_) => {}
            }
        }
    }

    /// A polled socket has news: whether the stream is open now. The connect itself is over
    /// when this is called.
    pub fn go_on_opening(&mut self) -> io::Result<bool> {
        self.socket.connected()?;
        match &mut self.tls {
            None => Ok(true),
            Some(session) => session.shake_hands(&self.socket),
        }
    }

    pub fn socket(&self) -> &Socket {
        &self.socket
    }

    /// Blocking calls return after so long at most.
    pub fn wait_at_most(&mut self, time: Duration) -> io::Result<()> {
        self.socket.wait_at_most(time)
    }

    /// Takes what there is room for; [`ByteStream::is_flushed`] tells whether that is on its way.
    #[inline]
    pub fn send(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.tls {
            None => self.socket.send(bytes),
            Some(session) => session.send(&self.socket, bytes),
        }
    }

    #[inline]
    pub fn is_flushed(&self) -> bool {
        self.tls.as_ref().is_none_or(|session| session.is_flushed())
    }

    /// Receives once; 0 is the end.
    #[inline]
    pub fn receive(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match &mut self.tls {
            None => self.socket.receive(buffer),
            Some(session) => session.receive(&self.socket, buffer),
        }
    }

    /// Whether there are bytes that the socket no longer tells of.
    #[inline]
    pub fn holds_more(&self) -> bool {
        self.tls.as_ref().is_some_and(|session| session.holds_more())
    }

    /// Whether the peer is known to send no more; a socket says so only when it is received from.
    #[inline]
    pub fn is_over(&self) -> bool {
        self.tls.as_ref().is_some_and(|session| session.is_over())
    }

    /// Whether an idle stream is still open and nothing unasked for has come.
    pub fn is_quiet(&mut self) -> bool {
        match &mut self.tls {
            None => self.socket.is_quiet(),
            Some(session) => session.is_quiet(&self.socket),
        }
    }
}

/// What this machine has not enough of for a further connection, if that is the error.
fn lack(error: &io::Error) -> Option<&'static str> {
    match error.raw_os_error()? {
        libc::EMFILE | libc::ENFILE => Some(
            "the limit of open files is below the number of connections; raise it (ulimit -n), or \
             lower --users",
        ),
        libc::EADDRNOTAVAIL => Some(
            "this machine has no free local port for another connection; use \
             --connection keep-alive, lower --users, or widen net.ipv4.ip_local_port_range",
        ),
        _ => None,
    }
}

impl ErrorKind {
    /// Of a stream that could not be opened.
    pub fn of_opening(error: &io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::InvalidData => Self::Tls,
            _ => Self::Connect,
        }
    }

    /// Of a stream that could be sent to or received from no more.
    pub fn of_use(error: &io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::InvalidData => Self::Tls,
            io::ErrorKind::UnexpectedEof => Self::Closed,
            _ => Self::Reset,
        }
    }
}
