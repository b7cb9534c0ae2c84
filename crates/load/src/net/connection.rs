// SPDX-License-Identifier: Apache-2.0
//! Requests and their replies over one [`ByteStream`]: one at a time, or several under way.

use super::byte_stream::ByteStream;
use super::reply_parser::ReplyParser;
use super::socket::Waiting;
use crate::record::sample::{ErrorKind, Outcome};
use crate::target::Target;
use std::io;
use std::ops::Range;
use std::time::Duration;

/// Also the most that the head of an HTTP response may measure.
const BUFFER: usize = 32 * 1024;

#[derive(Debug)]
pub struct Connection {
    byte_stream: ByteStream,
    /// Requests without their reply.
    under_way: usize,
    /// Those of them that have not been sent whole, and the bytes of the first one that have.
    unsent: usize,
    sent: usize,
    /// Of the first request under way.
    reply: Box<dyn ReplyParser>,
    buffer: Box<[u8]>,
    /// Bytes of the buffer that the reply has not taken.
    left: Range<usize>,
    /// They may hold the next reply.
    is_ahead: bool,
    /// Nothing can be sent any more.
    broken: Option<ErrorKind>,
}

/// Where a request stands after something could be sent or received.
#[derive(Debug, PartialEq, Eq)]
pub enum Progress {
    /// The next call may bring more.
    Partial,
    /// There is nothing to be had now.
    Waiting,
    Done(Outcome),
    /// The request failed, and with it the connection.
    Failed(Outcome),
}

impl Connection {
    pub fn open(target: &Target, waiting: Waiting) -> io::Result<Self> {
        Ok(Self {
            byte_stream: ByteStream::open(&target.address, target.tls.as_ref(), waiting)?,
            under_way: 0,
            unsent: 0,
            sent: 0,
            reply: target.protocol.reply(),
            buffer: vec![0; BUFFER].into_boxed_slice(),
            left: 0..0,
            is_ahead: false,
            broken: None,
        })
    }

    pub fn byte_stream(&self) -> &ByteStream {
        &self.byte_stream
    }

    /// As of its byte stream.
    pub fn go_on_opening(&mut self) -> io::Result<bool> {
        self.byte_stream.go_on_opening()
    }

    /// As of its byte stream.
    pub fn is_quiet(&mut self) -> bool {
        self.byte_stream.is_quiet()
    }

    /// Blocking calls return after so long at most.
    pub fn wait_at_most(&mut self, time: Duration) -> io::Result<()> {
        self.byte_stream.wait_at_most(time)
    }

    /// Whether another request may follow when all are done: the server keeps the connection
    /// alive, has not ended it already, and did not answer before it had the whole request.
    pub fn is_reusable(&self) -> bool {
        self.reply.keeps_alive()
            && self.is_sent()
            && self.broken.is_none()
            && !self.byte_stream.is_over()
    }

    /// One more request is to be sent.
    pub fn begin(&mut self) {
        if self.under_way == 0 {
            self.reply.begin();
            self.left = 0..0;
        }
        self.under_way += 1;
        self.unsent += 1;
    }

    /// Sends what the byte stream takes; `Partial` once all requests are on their way.
    pub fn send(&mut self, target: &Target) -> Progress {
        match self.byte_stream.send(target.requests.next(self.unsent, self.sent)) {
            Ok(count) => {
                let (whole, rest) = target.requests.split(self.sent + count);
                self.unsent -= whole;
                self.sent = rest;
                if self.is_sent() { Progress::Partial } else { Progress::Waiting }
            }
            Err(error) if is_transient(&error) => Progress::Waiting,
            Err(error) => {
                // The server takes no more of the request. It may have said why before: with a
                // large body, that it is too large.
                self.broken = Some(ErrorKind::of_use(&error));
                self.receive()
            }
        }
    }

    pub fn is_sent(&self) -> bool {
        self.unsent == 0 && self.byte_stream.is_flushed()
    }

    /// Whether the next call of [`Connection::receive`] needs no news of the socket.
    pub fn has_more(&self) -> bool {
        self.under_way > 0 && (self.is_ahead || self.broken.is_some())
    }

    /// Receives once from the socket, and takes all that this brought, up to the end of a reply.
    pub fn receive(&mut self) -> Progress {
        loop {
            let progress = if self.is_ahead { self.take() } else { self.receive_once() };
            let more = self.byte_stream.holds_more() || self.byte_stream.is_over();
            match (progress, self.broken) {
                (Progress::Partial, broken) if more || broken.is_some() => {}
                (Progress::Waiting | Progress::Failed(_), Some(error)) => {
                    return Progress::Failed(self.reply.failed(error));
                }
                (progress, _) => return progress,
            }
        }
    }

    fn receive_once(&mut self) -> Progress {
        if self.left.start > 0 {
            self.buffer.copy_within(self.left.clone(), 0);
            self.left = 0..self.left.len();
        }
        match self.byte_stream.receive(&mut self.buffer[self.left.end..]) {
            Ok(0) if self.reply.close() => self.complete(),
            Ok(0) => Progress::Failed(self.reply.failed(ErrorKind::Closed)),
            Ok(count) => {
                self.left.end += count;
                self.take()
            }
            Err(error) if is_transient(&error) => Progress::Waiting,
            Err(error) => Progress::Failed(self.reply.failed(ErrorKind::of_use(&error))),
        }
    }

    /// Takes what the buffer has of the reply.
    fn take(&mut self) -> Progress {
        match self.reply.advance(&self.buffer[self.left.clone()]) {
            Ok(taken) => self.left.start += taken,
            Err(error) => return Progress::Failed(self.reply.failed(error)),
        }
        if self.reply.is_done() {
            return self.complete();
        }
        self.is_ahead = false;
        if self.left.len() == self.buffer.len() {
            return Progress::Failed(self.reply.failed(ErrorKind::Protocol));
        }
        Progress::Partial
    }

    fn complete(&mut self) -> Progress {
        self.under_way -= 1;
        // Bytes that no request asked for would be taken for the next reply.
        let unasked = !self.left.is_empty() || self.byte_stream.holds_more();
        let too_early = self.unsent > self.under_way;
        if (self.under_way == 0 && unasked) || (self.under_way > 0 && too_early) {
            return Progress::Failed(self.reply.failed(ErrorKind::Protocol));
        }
        self.is_ahead = !self.left.is_empty();
        let outcome = self.reply.outcome();
        if self.under_way > 0 {
            self.reply.begin();
        }
        Progress::Done(outcome)
    }

    /// What the first request under way amounts to if it is given up now.
    pub fn give_up(&self, error: ErrorKind) -> Outcome {
        self.reply.failed(error)
    }
}

fn is_transient(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}
