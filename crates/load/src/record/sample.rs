// SPDX-License-Identifier: Apache-2.0
use crate::clock::Nanoseconds;

/// What became of a request; `None` of [`Sample::error`] is a success.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ErrorKind {
    /// No connection could be made.
    Connect,
    /// The connection was reset.
    Reset,
    /// No complete answer came in time.
    Timeout,
    /// The connection was closed before the answer was complete.
    Closed,
    /// No TLS session came about, or what came is not of it.
    Tls,
    /// What came is not the protocol that was asked for.
    Protocol,
    /// The reply is, or announces to be, longer than its limit.
    Limit,
    /// A status that is not a success, or an error reply of Redis.
    Status,
    /// A body that is not the expected one.
    Body,
}

impl ErrorKind {
    pub fn name(self) -> &'static str {
        match self {
            Self::Connect => "connect",
            Self::Reset => "reset",
            Self::Timeout => "timeout",
            Self::Closed => "closed",
            Self::Tls => "tls",
            Self::Protocol => "protocol",
            Self::Limit => "limit",
            Self::Status => "status",
            Self::Body => "body",
        }
    }
}

/// How a request ended: its outcome without its times.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Outcome {
    /// HTTP status, 0 without an answer or over plain TCP.
    pub status: u16,
    pub error: Option<ErrorKind>,
    /// Bytes of the answer that came, head and body.
    pub bytes: u64,
}

impl Outcome {
    /// A request without any answer.
    pub fn failed(error: ErrorKind) -> Self {
        Self { status: 0, error: Some(error), bytes: 0 }
    }
}

/// One request as it is recorded.
#[derive(Debug, Clone, Copy)]
pub struct Sample {
    pub target: u16,
    pub slice: i32,
    pub intended: Nanoseconds,
    pub start: Nanoseconds,
    pub duration: Nanoseconds,
    pub outcome: Outcome,
}

impl Sample {
    /// Time from when the request should have started to its last byte, ns.
    pub fn response(&self) -> Nanoseconds {
        self.start + self.duration - self.intended
    }
}
