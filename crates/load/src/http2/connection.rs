// SPDX-License-Identifier: Apache-2.0
//! One connection of HTTP/2, from its socket to its end.

use super::stream::Stream;
use crate::net::byte_stream::ByteStream;
use crate::net::socket::Waiting;
use crate::record::sample::ErrorKind;
use crate::target::Target;
use bytes::Bytes;
use h2::client::{Builder, Connection, SendRequest};
use h2::{Ping, PingPong};
use std::future::Future;
use std::io;
use std::os::fd::RawFd;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Context, Poll, Waker};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Bytes that a server may send ahead: so many that the generator never holds it up.
const WINDOW: u32 = 1 << 30;
/// Bytes that are taken from a connection at a time. h2 would read until there is no more, which
/// with a fast server is never: its streams would not be polled meanwhile, so that all that came
/// would be kept, and nobody would look for requests whose time is over.
const TURN: u64 = 256 * 1024;

type Shaking = Pin<Box<dyn Future<Output = Result<Parts, h2::Error>> + Send>>;
type Parts = (SendRequest<Bytes>, Connection<Carrier, Bytes>);

pub struct Http2Connection {
    state: State,
    socket: RawFd,
    /// Streams that users have, or are about to have.
    pub streams: usize,
    leaving: bool,
    wants_to_write: bool,
    traffic: Arc<Traffic>,
}

enum State {
    Connecting(ByteStream),
    Shaking(Shaking),
    /// The answer to a ping shows that the server's settings are known, the number of streams
    /// that it allows above all.
    Settling(Parts, PingPong),
    Open(Parts),
    Ended,
}

/// What a byte stream reports through h2, which has it.
#[derive(Default)]
struct Traffic {
    blocked: AtomicBool,
    heard: AtomicU64,
    /// How much may have been heard at the end of this turn.
    most: AtomicU64,
}

impl Http2Connection {
    pub fn open(target: &Target) -> io::Result<Self> {
        let byte_stream = ByteStream::open(&target.address, target.tls.as_ref(), Waiting::Polled)?;
        Ok(Self {
            socket: byte_stream.socket().raw(),
            state: State::Connecting(byte_stream),
            streams: 0,
            leaving: false,
            wants_to_write: true,
            traffic: Arc::default(),
        })
    }

    pub fn socket(&self) -> RawFd {
        self.socket
    }

    pub fn is_open(&self) -> bool {
        matches!(self.state, State::Open(_))
    }

    /// It takes no further streams.
    pub fn leave(&mut self) {
        self.leaving = true;
    }

    pub fn is_leaving(&self) -> bool {
        self.leaving
    }

    /// It takes no further streams, and there are none on it.
    pub fn is_through(&self) -> bool {
        self.leaving && self.streams == 0
    }

    /// How much has been heard of the server.
    pub fn heard(&self) -> u64 {
        self.traffic.heard.load(Ordering::Relaxed)
    }

    /// Whether it takes a further stream now.
    pub fn has_room(&mut self) -> bool {
        let State::Open((sender, _)) = &mut self.state else { return false };
        let ready = sender.poll_ready(&mut context());
        // The server has announced the end.
        self.leaving |= matches!(ready, Poll::Ready(Err(_)));
        !self.leaving && ready.is_ready() && self.streams < sender.current_max_send_streams()
    }

    /// Whether there may be more to be heard of which the socket no longer tells.
    pub fn has_more(&self) -> bool {
        self.heard() >= self.traffic.most.load(Ordering::Relaxed)
    }

    /// Does what can be done in one turn; the reason once it has ended.
    pub fn go_on(&mut self) -> Option<ErrorKind> {
        self.traffic.most.store(self.heard() + TURN, Ordering::Relaxed);
        loop {
            match std::mem::replace(&mut self.state, State::Ended) {
                State::Connecting(mut byte_stream) => match byte_stream.go_on_opening() {
                    Ok(true) => self.state = State::Shaking(self.shake_hands(byte_stream)),
                    Ok(false) => {
                        self.traffic.blocked.store(!byte_stream.is_flushed(), Ordering::Relaxed);
                        self.state = State::Connecting(byte_stream);
                        return None;
                    }
                    Err(error) => return Some(ErrorKind::of_opening(&error)),
                },
                State::Shaking(mut shaking) => match shaking.as_mut().poll(&mut context()) {
                    Poll::Pending => {
                        self.state = State::Shaking(shaking);
                        return None;
                    }
                    Poll::Ready(Err(error)) => return Some(ErrorKind::of_h2(&error)),
                    Poll::Ready(Ok((sender, mut connection))) => {
                        let mut pings = connection.ping_pong()?;
                        // The first one is always taken.
                        let _ = pings.send_ping(Ping::opaque());
                        self.state = State::Settling((sender, connection), pings);
                    }
                },
                State::Settling((sender, mut connection), mut pings) => {
                    let ended = poll(&mut connection);
                    let settled = pings.poll_pong(&mut context()).is_ready();
                    if ended.is_some() {
                        return ended;
                    }
                    self.state = if settled {
                        State::Open((sender, connection))
                    } else {
                        State::Settling((sender, connection), pings)
                    };
                    return None;
                }
                State::Open((sender, mut connection)) => {
                    let ended = poll(&mut connection);
                    if ended.is_none() {
                        self.state = State::Open((sender, connection));
                    }
                    return ended;
                }
                State::Ended => return Some(ErrorKind::Closed),
            }
        }
    }

    fn shake_hands(&self, byte_stream: ByteStream) -> Shaking {
        self.traffic.blocked.store(false, Ordering::Relaxed);
        let carrier = Carrier { byte_stream, traffic: self.traffic.clone() };
        Box::pin(async move {
            Builder::new()
                .enable_push(false)
                .initial_window_size(WINDOW)
                .initial_connection_window_size(WINDOW)
                .handshake(carrier)
                .await
        })
    }

    /// Gives h2 one request; [`Http2Connection::push_out`] sends it.
    pub fn send(&mut self, target: &Target) -> Result<Stream, ErrorKind> {
        let State::Open((sender, _)) = &mut self.state else { return Err(ErrorKind::Closed) };
        let request = &target.stream;
        let sent = sender.send_request(request.head.clone(), request.body.is_none());
        let (response, mut stream) = sent.map_err(|error| ErrorKind::of_h2(&error))?;
        if let Some(body) = &request.body {
            stream.send_data(body.clone(), true).map_err(|error| ErrorKind::of_h2(&error))?;
        }
        Ok(Stream::new(response, self.heard()))
    }

    /// Sends what h2 has been given, and takes nothing; the reason if the connection has ended
    /// with that.
    pub fn push_out(&mut self) -> Option<ErrorKind> {
        let State::Open((_, connection)) = &mut self.state else { return None };
        let most = self.traffic.most.swap(0, Ordering::Relaxed);
        let ended = poll(connection);
        self.traffic.most.store(most, Ordering::Relaxed);
        self.leaving |= ended.is_some();
        ended
    }

    /// Whether the socket is to be waited for to become writable, if that is news.
    pub fn changed_interest(&mut self) -> Option<bool> {
        let unsent = self.traffic.blocked.load(Ordering::Relaxed);
        (std::mem::replace(&mut self.wants_to_write, unsent) != unsent).then_some(unsent)
    }
}

fn poll(connection: &mut Connection<Carrier, Bytes>) -> Option<ErrorKind> {
    match Pin::new(connection).poll(&mut context()) {
        Poll::Pending => None,
        Poll::Ready(Ok(())) => Some(ErrorKind::Closed),
        Poll::Ready(Err(error)) => Some(ErrorKind::of_h2(&error)),
    }
}

/// Connections are polled when their socket has news or something was given to them: nobody
/// has to be woken for that.
fn context() -> Context<'static> {
    Context::from_waker(Waker::noop())
}

/// A byte stream as h2 wants it.
struct Carrier {
    byte_stream: ByteStream,
    traffic: Arc<Traffic>,
}

impl Carrier {
    /// What a call amounts to that does not wait.
    fn outcome<T>(&self, result: io::Result<T>, writes: bool) -> Poll<io::Result<T>> {
        match result {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                if writes {
                    self.traffic.blocked.store(true, Ordering::Relaxed);
                }
                Poll::Pending
            }
            result => Poll::Ready(result),
        }
    }
}

impl AsyncRead for Carrier {
    fn poll_read(
        self: Pin<&mut Self>,
        _context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if this.traffic.heard.load(Ordering::Relaxed) >= this.traffic.most.load(Ordering::Relaxed) {
            return Poll::Pending;
        }
        let received = this.byte_stream.receive(buffer.initialize_unfilled());
        let received = received.map(|count| {
            buffer.advance(count);
            this.traffic.heard.fetch_add(count as u64, Ordering::Relaxed);
        });
        this.outcome(received, false)
    }
}

impl AsyncWrite for Carrier {
    fn poll_write(
        self: Pin<&mut Self>,
        _context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        this.traffic.blocked.store(false, Ordering::Relaxed);
        let sent = match this.byte_stream.send(bytes) {
            // What TLS holds back has to go first.
            Ok(0) if !bytes.is_empty() => Err(io::ErrorKind::WouldBlock.into()),
            sent => sent,
        };
        this.outcome(sent, true)
    }

    fn poll_flush(self: Pin<&mut Self>, _context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if this.byte_stream.is_flushed() {
            return Poll::Ready(Ok(()));
        }
        this.traffic.blocked.store(false, Ordering::Relaxed);
        let flushed = match this.byte_stream.send(&[]) {
            Ok(_) if !this.byte_stream.is_flushed() => Err(io::ErrorKind::WouldBlock.into()),
            flushed => flushed.map(drop),
        };
        this.outcome(flushed, true)
    }

    fn poll_shutdown(self: Pin<&mut Self>, _context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}
