// SPDX-License-Identifier: Apache-2.0
//! An HTTP/1.1 response, read in whatever pieces it comes (RFC 9112).

use super::chunked::{Chunked, Malformed};
use crate::record::sample::{ErrorKind, Outcome};
use httparse::Status;

const MOST_HEADERS: usize = 96;

/// What makes an answer a success.
#[derive(Debug, Default, Clone)]
pub struct Expected {
    /// Statuses that count as success; empty for 200 to 399.
    pub statuses: Vec<u16>,
    pub body: Option<Vec<u8>>,
}

impl Expected {
    /// What is wrong with a complete answer.
    pub fn error(&self, status: u16, body: &BodyCheck) -> Option<ErrorKind> {
        let welcome = match self.statuses.as_slice() {
            [] => (200..400).contains(&status),
            statuses => statuses.contains(&status),
        };
        if !welcome {
            Some(ErrorKind::Status)
        } else if body.is_wrong(self.body.as_deref()) {
            Some(ErrorKind::Body)
        } else {
            None
        }
    }
}

#[derive(Debug)]
enum State {
    Head,
    /// So many bytes of the body are missing.
    Length(u64),
    Chunked(Chunked),
    UntilClose,
    Done,
}

#[derive(Debug)]
pub struct Response {
    state: State,
    status: u16,
    bytes: u64,
    keep_alive: bool,
    body: BodyCheck,
}

/// A body beside the one that is expected.
#[derive(Debug, Default)]
pub struct BodyCheck {
    length: usize,
    differs: bool,
}

impl Response {
    pub fn new() -> Self {
        Self {
            state: State::Head,
            status: 0,
            bytes: 0,
            keep_alive: true,
            body: BodyCheck::default(),
        }
    }

    /// Takes what it can of `input` and says how many bytes that was; a head is
    /// taken once it is complete. Bytes left when [`Response::is_done`] are not
    /// this response's.
    pub fn advance(
        &mut self,
        input: &[u8],
        to_head: bool,
        expected: &Expected,
    ) -> Result<usize, Malformed> {
        let mut taken = 0;
        while matches!(self.state, State::Head) {
            match self.head(&input[taken..], to_head)? {
                Some(length) => taken += length,
                None => break,
            }
        }
        let expected = expected.body.as_deref();
        let rest = &input[taken..];
        taken += match &mut self.state {
            State::Head | State::Done => 0,
            State::Length(missing) => {
                let part = rest.len().min(usize::try_from(*missing).unwrap_or(usize::MAX));
                self.body.add(&rest[..part], expected);
                *missing -= part as u64;
                if *missing == 0 {
                    self.state = State::Done;
                }
                part
            }
            State::Chunked(chunked) => {
                let body = &mut self.body;
                let part = chunked.advance(rest, |data| body.add(data, expected))?;
                if chunked.is_done() {
                    self.state = State::Done;
                }
                part
            }
            State::UntilClose => {
                self.body.add(rest, expected);
                rest.len()
            }
        };
        self.bytes += taken as u64;
        Ok(taken)
    }

    /// The peer closed: true if that is a proper end of this response.
    pub fn close(&mut self) -> bool {
        if matches!(self.state, State::UntilClose) {
            self.state = State::Done;
        }
        self.is_done()
    }

    pub fn is_done(&self) -> bool {
        matches!(self.state, State::Done)
    }

    /// Whether the server lets the connection live on.
    pub fn keeps_alive(&self) -> bool {
        self.keep_alive
    }

    /// What the complete response amounts to.
    pub fn outcome(&self, expected: &Expected) -> Outcome {
        let error = expected.error(self.status, &self.body);
        Outcome { error, ..self.failed(ErrorKind::Status) }
    }

    /// What the response amounts to, cut short by an error.
    pub fn failed(&self, error: ErrorKind) -> Outcome {
        Outcome { status: self.status, error: Some(error), bytes: self.bytes }
    }

    /// Reads one head if it is complete; that of an interim response is passed over.
    fn head(&mut self, input: &[u8], to_head: bool) -> Result<Option<usize>, Malformed> {
        let mut headers = [httparse::EMPTY_HEADER; MOST_HEADERS];
        let mut head = httparse::Response::new(&mut headers);
        let parsed = as_servers_write().parse_response(&mut head, input);
        let Status::Complete(length) = parsed.map_err(|_| Malformed)? else {
            return Ok(None);
        };
        let status = head.code.unwrap_or(0);
        if matches!(status, 100 | 102..=199) {
            return Ok(Some(length));
        }
        self.status = status;
        let (mut close, mut keep_alive) = (false, head.version == Some(1));
        let mut content_length = None;
        let mut encoded = None;
        for header in head.headers.iter() {
            if header.name.eq_ignore_ascii_case("content-length") {
                let value = parse_length(header.value)?;
                if content_length.is_some_and(|known| known != value) {
                    return Err(Malformed);
                }
                content_length = Some(value);
            } else if header.name.eq_ignore_ascii_case("transfer-encoding") {
                encoded = Some(last_token(header.value).eq_ignore_ascii_case(b"chunked"));
            } else if header.name.eq_ignore_ascii_case("connection") {
                for option in header.value.split(|byte| *byte == b',').map(<[u8]>::trim_ascii) {
                    close |= option.eq_ignore_ascii_case(b"close");
                    keep_alive |= option.eq_ignore_ascii_case(b"keep-alive");
                }
            }
        }
        self.keep_alive = keep_alive && !close;
        self.state = if to_head || matches!(status, 101 | 204 | 304) {
            self.keep_alive &= status != 101;
            State::Done
        } else {
            match (encoded, content_length) {
                (Some(true), _) => State::Chunked(Chunked::new()),
                (None, Some(0)) => State::Done,
                (None, Some(length)) => State::Length(length),
                (Some(false), _) | (None, None) => {
                    self.keep_alive = false;
                    State::UntilClose
                }
            }
        };
        Ok(Some(length))
    }
}

impl BodyCheck {
    pub fn add(&mut self, part: &[u8], expected: Option<&[u8]>) {
        if let Some(expected) = expected {
            let rest = expected.get(self.length..).unwrap_or_default();
            self.differs |= !rest.starts_with(part);
        }
        self.length += part.len();
    }

    fn is_wrong(&self, expected: Option<&[u8]>) -> bool {
        expected.is_some_and(|expected| self.differs || self.length != expected.len())
    }
}

/// Old servers fold a header into several lines, which whoever receives it has to take (RFC
/// 9112, section 5.2), or leave a space before the colon, which all of them do take.
fn as_servers_write() -> httparse::ParserConfig {
    let mut config = httparse::ParserConfig::default();
    config.allow_obsolete_multiline_headers_in_responses(true);
    config.allow_spaces_after_header_name_in_responses(true);
    config
}

fn parse_length(value: &[u8]) -> Result<u64, Malformed> {
    if value.is_empty() || !value.iter().all(u8::is_ascii_digit) {
        return Err(Malformed);
    }
    str::from_utf8(value).ok().and_then(|digits| digits.parse().ok()).ok_or(Malformed)
}

fn last_token(value: &[u8]) -> &[u8] {
    value.rsplit(|byte| *byte == b',').next().unwrap_or_default().trim_ascii()
}

#[cfg(test)]
#[path = "response_test.rs"]
mod tests;
