// SPDX-License-Identifier: Apache-2.0
//! Replies over TCP: bytes up to an end.

use crate::net::reply_parser::ReplyParser;
use crate::record::sample::{ErrorKind, Outcome};
use std::sync::Arc;
use tare_load_replies::{Refusal, Resp, Search, Until};

/// Where a reply ends; `limit` is the most bytes that it may have.
#[derive(Debug)]
pub enum End {
    Bytes(u64),
    Until { text: Until, limit: u64 },
    Resp { limit: u64 },
}

#[derive(Debug)]
pub struct TcpReply {
    end: Arc<End>,
    state: State,
    bytes: u64,
}

#[derive(Debug)]
enum State {
    Bytes { missing: u64 },
    Until { search: Search, is_done: bool },
    Resp(Resp),
}

impl State {
    fn new(end: &End) -> Self {
        match end {
            End::Bytes(missing) => Self::Bytes { missing: *missing },
            End::Until { limit, .. } => Self::Until { search: Search::new(*limit), is_done: false },
            End::Resp { limit } => Self::Resp(Resp::new(*limit)),
        }
    }
}

impl TcpReply {
    pub fn new(end: Arc<End>) -> Self {
        Self { state: State::new(&end), end, bytes: 0 }
    }
}

impl ReplyParser for TcpReply {
    fn begin(&mut self) {
        self.state = State::new(&self.end);
        self.bytes = 0;
    }

    fn advance(&mut self, input: &[u8]) -> Result<usize, ErrorKind> {
        let taken = match (&mut self.state, &*self.end) {
            (State::Bytes { missing }, _) => {
                let part = input.len().min(usize::try_from(*missing).unwrap_or(usize::MAX));
                *missing -= part as u64;
                part
            }
            (State::Until { search, is_done }, End::Until { text, .. }) => {
                let (taken, is_end) = search.advance(input, text)?;
                *is_done = is_end;
                taken
            }
            (State::Resp(resp), _) => resp.advance(input)?,
            (State::Until { .. }, _) => return Err(ErrorKind::Protocol),
        };
        self.bytes += taken as u64;
        Ok(taken)
    }

    fn close(&mut self) -> bool {
        false
    }

    fn is_done(&self) -> bool {
        match &self.state {
            State::Bytes { missing } => *missing == 0,
            State::Until { is_done, .. } => *is_done,
            State::Resp(resp) => resp.is_done(),
        }
    }

    fn keeps_alive(&self) -> bool {
        true
    }

    fn outcome(&self) -> Outcome {
        let is_error = matches!(&self.state, State::Resp(resp) if resp.is_error());
        Outcome { status: 0, error: is_error.then_some(ErrorKind::Status), bytes: self.bytes }
    }

    fn failed(&self, error: ErrorKind) -> Outcome {
        Outcome { status: 0, error: Some(error), bytes: self.bytes }
    }
}

impl From<Refusal> for ErrorKind {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::Malformed => Self::Protocol,
            Refusal::TooLong => Self::Limit,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The outcome of a reply that comes in these pieces, if it is complete, and what is left.
    fn read(end: &Arc<End>, pieces: &[&[u8]]) -> Result<(Option<Outcome>, usize), ErrorKind> {
        let mut reply = TcpReply::new(end.clone());
        let mut left = 0;
        for piece in pieces {
            left += piece.len() - reply.advance(piece)?;
        }
        Ok((reply.is_done().then(|| reply.outcome()), left))
    }

    fn until(text: &[u8], limit: u64) -> Arc<End> {
        Arc::new(End::Until { text: Until::new(text).unwrap(), limit })
    }

    fn resp(limit: u64) -> Arc<End> {
        Arc::new(End::Resp { limit })
    }

    fn ends() -> [(Arc<End>, &'static [u8]); 3] {
        [
            (Arc::new(End::Bytes(5)), b"hello"),
            (until(b"\r\n", 100), b"a\rb\r\n"),
            (resp(100), b"$3\r\nabc\r\n"),
        ]
    }

    #[test]
    fn replies_are_read_at_every_split_and_leave_what_is_not_theirs() {
        for (end, text) in ends() {
            let whole = [text, b"more"].concat();
            for split in 0..=text.len() {
                let (begin, rest) = whole.split_at(split);
                let complete = Outcome { status: 0, error: None, bytes: text.len() as u64 };
                assert_eq!(read(&end, &[begin, rest]), Ok((Some(complete), 4)), "{text:?} {split}");
            }
        }
    }

    #[test]
    fn one_reply_follows_another() {
        for (end, text) in ends() {
            let mut reply = TcpReply::new(end);
            for _ in 0..3 {
                assert_eq!(reply.advance(text), Ok(text.len()));
                assert!(reply.is_done());
                assert_eq!(reply.outcome().bytes, text.len() as u64);
                reply.begin();
                assert!(!reply.is_done());
            }
        }
    }

    #[test]
    fn a_reply_that_is_cut_short_has_its_reason() {
        assert_eq!(read(&until(b"x", 4), &[b"12345"]), Err(ErrorKind::Limit));
        assert_eq!(read(&resp(4), &[b"$10\r\n"]), Err(ErrorKind::Limit));
        assert_eq!(read(&resp(4), &[b"?"]), Err(ErrorKind::Protocol));
        assert_eq!(read(&Arc::new(End::Bytes(9)), &[b"12345"]), Ok((None, 0)));
    }

    #[test]
    fn an_error_of_redis_is_no_success() {
        let (outcome, _) = read(&resp(100), &[b"-ERR\r\n"]).unwrap();
        assert_eq!(outcome.unwrap().error, Some(ErrorKind::Status));
    }
}
