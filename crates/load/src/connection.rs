// SPDX-License-Identifier: Apache-2.0
//! HTTP/1.1 over one [`Channel`]: one request at a time, out and back.

use crate::channel::Channel;
use crate::response::Response;
use crate::sample::{ErrorKind, Outcome};
use crate::socket::Waiting;
use crate::target::Target;
use std::io;
use std::time::Duration;

/// Also the most that a response's head may measure.
const BUFFER: usize = 32 * 1024;

#[derive(Debug)]
pub struct Connection {
    channel: Channel,
    sent: usize,
    response: Response,
    buffer: Box<[u8]>,
    /// Bytes at the buffer's start that the response could not take yet.
    kept: usize,
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
            channel: Channel::open(&target.address, target.tls.as_ref(), waiting)?,
            sent: 0,
            response: Response::new(),
            buffer: vec![0; BUFFER].into_boxed_slice(),
            kept: 0,
        })
    }

    pub fn channel(&self) -> &Channel {
        &self.channel
    }

    /// As of its channel.
    pub fn go_on_opening(&mut self) -> io::Result<bool> {
        self.channel.go_on_opening()
    }

    /// As of its channel.
    pub fn is_quiet(&mut self) -> bool {
        self.channel.is_quiet()
    }

    /// Blocking calls return after so long at most.
    pub fn wait_at_most(&mut self, time: Duration) -> io::Result<()> {
        self.channel.wait_at_most(time)
    }

    /// Whether another request may follow the one that is done: the server keeps the
    /// connection alive, has not ended it already, and did not answer before it had the whole request.
    pub fn is_reusable(&self, target: &Target) -> bool {
        self.response.keeps_alive() && self.is_sent(target) && !self.channel.is_over()
    }

    /// Makes ready for the next request.
    pub fn begin(&mut self) {
        self.sent = 0;
        self.kept = 0;
        self.response = Response::new();
    }

    /// Sends what the channel takes; `Partial` once the whole request is on its way.
    pub fn send(&mut self, target: &Target) -> Progress {
        match self.channel.send(&target.request[self.sent..]) {
            Ok(count) => {
                self.sent += count;
                if self.is_sent(target) { Progress::Partial } else { Progress::Waiting }
            }
            Err(error) if is_transient(&error) => Progress::Waiting,
            Err(error) => self.answer_to_a_part(target, ErrorKind::of_use(&error)),
        }
    }

    /// The server takes no more of the request. It may have said why before: with a large
    /// body, that it is too large.
    fn answer_to_a_part(&mut self, target: &Target, error: ErrorKind) -> Progress {
        loop {
            match self.receive(target) {
                Progress::Partial => {}
                Progress::Done(outcome) => return Progress::Done(outcome),
                Progress::Waiting | Progress::Failed(_) => {
                    return Progress::Failed(self.response.failed(error));
                }
            }
        }
    }

    pub fn is_sent(&self, target: &Target) -> bool {
        self.sent == target.request.len() && self.channel.is_flushed()
    }

    /// Receives once from the socket, and takes all that this brought.
    pub fn receive(&mut self, target: &Target) -> Progress {
        loop {
            let progress = self.receive_once(target);
            let more = self.channel.holds_more() || self.channel.is_over();
            if progress != Progress::Partial || !more {
                return progress;
            }
        }
    }

    fn receive_once(&mut self, target: &Target) -> Progress {
        let count = match self.channel.receive(&mut self.buffer[self.kept..]) {
            Ok(0) if self.response.close() => {
                return Progress::Done(self.response.outcome(&target.expected));
            }
            Ok(0) => return Progress::Failed(self.response.failed(ErrorKind::Closed)),
            Ok(count) => count,
            Err(error) if is_transient(&error) => return Progress::Waiting,
            Err(error) => {
                return Progress::Failed(self.response.failed(ErrorKind::of_use(&error)));
            }
        };
        let filled = self.kept + count;
        let input = &self.buffer[..filled];
        let Ok(taken) = self.response.advance(input, target.to_head, &target.expected) else {
            return Progress::Failed(self.response.failed(ErrorKind::Protocol));
        };
        if self.response.is_done() {
            // Bytes that nobody asked for would be taken for the next response.
            return if taken < filled || self.channel.holds_more() {
                Progress::Failed(self.response.failed(ErrorKind::Protocol))
            } else {
                Progress::Done(self.response.outcome(&target.expected))
            };
        }
        self.kept = filled - taken;
        if self.kept == self.buffer.len() {
            return Progress::Failed(self.response.failed(ErrorKind::Protocol));
        }
        self.buffer.copy_within(taken..filled, 0);
        Progress::Partial
    }

    /// What the request amounts to if it is given up now.
    pub fn give_up(&self, error: ErrorKind) -> Outcome {
        self.response.failed(error)
    }
}

fn is_transient(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}
