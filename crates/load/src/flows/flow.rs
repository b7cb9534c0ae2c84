// SPDX-License-Identifier: Apache-2.0
//! One flow: a socket, the message that goes out on it, and what comes back.

use crate::arguments::flows::FlowProtocol;
use crate::clock::Nanoseconds;
use crate::net::socket::{Socket, Waiting};
use crate::record::sample::ErrorKind;
use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::{AsRawFd, RawFd};
use std::time::Duration;

/// The bytes of a datagram that tell it from an earlier one, if the message has so many.
const MARK: usize = size_of::<u64>();

/// A connected socket whose calls never wait.
#[derive(Debug)]
pub enum Stream {
    Tcp(Socket),
    Udp(UdpSocket),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Connecting,
    Sending,
    Waiting,
    Idle,
}

/// What became of a message.
pub type Done = Result<(), ErrorKind>;

#[derive(Debug)]
pub struct Flow {
    /// Number of the server.
    pub peer: usize,
    pub stream: Option<Stream>,
    pub intended: Nanoseconds,
    pub start: Nanoseconds,
    pub received: usize,
    /// What the kernel answered when the message failed.
    pub refusal: Option<io::Error>,
    sent: usize,
    mark: u64,
    phase: Phase,
}

impl Stream {
    /// A socket for one message; that of TCP may still be connecting.
    pub fn begin(transport: FlowProtocol, peer: &SocketAddr) -> io::Result<Self> {
        match transport {
            FlowProtocol::Tcp => Socket::connect(peer, Waiting::Polled).map(Self::Tcp),
            FlowProtocol::Udp => Self::udp(peer),
        }
    }

    /// A socket that is connected.
    pub fn connected(
        transport: FlowProtocol,
        peer: &SocketAddr,
        timeout: Duration,
    ) -> io::Result<Self> {
        match transport {
            FlowProtocol::Tcp => {
                let socket = Socket::connect(peer, Waiting::Blocking { connect: timeout })?;
                socket.never_block()?;
                Ok(Self::Tcp(socket))
            }
            FlowProtocol::Udp => Self::udp(peer),
        }
    }

    fn udp(peer: &SocketAddr) -> io::Result<Self> {
        let any: SocketAddr = match peer {
            SocketAddr::V4(_) => ([0, 0, 0, 0], 0).into(),
            SocketAddr::V6(_) => ([0u16; 8], 0).into(),
        };
        let socket = UdpSocket::bind(any)?;
        socket.connect(peer)?;
        socket.set_nonblocking(true)?;
        Ok(Self::Udp(socket))
    }

    pub fn raw(&self) -> RawFd {
        match self {
            Self::Tcp(socket) => socket.raw(),
            Self::Udp(socket) => socket.as_raw_fd(),
        }
    }

    fn send(&self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(socket) => socket.send(bytes),
            Self::Udp(socket) => socket.send(bytes),
        }
    }

    fn receive(&self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(socket) => socket.receive(buffer),
            Self::Udp(socket) => socket.recv(buffer),
        }
    }
}

impl Flow {
    pub fn idle(peer: usize, stream: Option<Stream>) -> Self {
        Self {
            peer,
            stream,
            intended: 0,
            start: 0,
            received: 0,
            refusal: None,
            sent: 0,
            mark: 0,
            phase: Phase::Idle,
        }
    }

    pub fn is_under_way(&self) -> bool {
        self.phase != Phase::Idle
    }

    /// Begins a message; `mark` is different in every one.
    pub fn begin(&mut self, intended: Nanoseconds, start: Nanoseconds, mark: u64, connects: bool) {
        (self.intended, self.start, self.mark) = (intended, start, mark);
        (self.sent, self.received) = (0, 0);
        self.phase = if connects { Phase::Connecting } else { Phase::Sending };
    }

    pub fn end(&mut self) {
        self.phase = Phase::Idle;
    }

    /// Goes on as far as possible without waiting; `Some` when the message has ended.
    ///
    /// `message` and `buffer` are shared by all flows; the buffer is longer than the message.
    pub fn go_on(&mut self, writable: bool, message: &mut [u8], buffer: &mut [u8]) -> Option<Done> {
        let stream = self.stream.as_ref()?;
        if self.phase == Phase::Connecting {
            let Stream::Tcp(socket) = stream else { return Some(Err(ErrorKind::Connect)) };
            if !writable {
                return None;
            }
            if let Err(error) = socket.connected() {
                self.refusal = Some(error);
                return Some(Err(ErrorKind::Connect));
            }
            self.phase = Phase::Sending;
        }
        let is_udp = matches!(stream, Stream::Udp(_));
        if is_udp && message.len() >= MARK {
            message[..MARK].copy_from_slice(&self.mark.to_le_bytes());
        }
        while self.phase == Phase::Sending {
            match stream.send(&message[self.sent..]) {
                Ok(bytes) => self.sent += bytes,
                Err(error) => return refused(error, &mut self.refusal),
            }
            if self.sent == message.len() {
                self.phase = Phase::Waiting;
            }
        }
        while self.phase == Phase::Waiting {
            let bytes = match stream.receive(buffer) {
                Ok(0) if !is_udp => return Some(Err(ErrorKind::Closed)),
                Ok(bytes) => &buffer[..bytes],
                Err(error) => return refused(error, &mut self.refusal),
            };
            if is_udp {
                // The reply to a message that was given up may come late.
                if bytes != message {
                    continue;
                }
                self.received = bytes.len();
                return Some(Ok(()));
            }
            let expected = message[self.received..].get(..bytes.len());
            self.received += bytes.len();
            if expected != Some(bytes) {
                return Some(Err(ErrorKind::Body));
            }
            if self.received == message.len() {
                return Some(Ok(()));
            }
        }
        None
    }
}

fn refused(error: io::Error, refusal: &mut Option<io::Error>) -> Option<Done> {
    use io::ErrorKind as Io;
    let kind = error.kind();
    if !matches!(kind, Io::WouldBlock | Io::Interrupted) {
        *refusal = Some(error);
    }
    match kind {
        Io::WouldBlock | Io::Interrupted => None,
        Io::ConnectionRefused | Io::HostUnreachable | Io::NetworkUnreachable => {
            Some(Err(ErrorKind::Connect))
        }
        Io::ConnectionReset | Io::BrokenPipe => Some(Err(ErrorKind::Reset)),
        _ => Some(Err(ErrorKind::Closed)),
    }
}
