// SPDX-License-Identifier: Apache-2.0
use crate::Refusal;

/// The shortest element: `_\r\n`.
const LEAST: u64 = 3;
/// A length has at most as many digits as fit into a u64.
const MOST_DIGITS: u32 = 19;

/// One reply of Redis' protocol, RESP2 or RESP3.
///
/// An aggregate adds its elements to the number of those that are missing, so nesting needs
/// neither recursion nor a stack. Pushes and attributes before the reply are passed over.
/// Aggregates and strings without a length (`*?`), which no Redis sends, are refused.
#[derive(Debug, Clone)]
pub struct Resp {
    state: State,
    /// Elements until the reply is complete.
    missing: u64,
    /// Bytes that the reply may still have.
    room: u64,
    /// The first element of the reply itself has come.
    begun: bool,
    is_error: bool,
}

#[derive(Debug, Clone, Copy)]
enum State {
    /// The byte that says what the next element is.
    Kind,
    /// An element that ends with its line.
    Line,
    LineEnd,
    Length {
        kind: u8,
        negative: bool,
        value: u64,
        digits: u32,
    },
    LengthEnd {
        kind: u8,
        value: Option<u64>,
    },
    Data {
        missing: u64,
    },
    DataReturn,
    DataEnd,
    Done,
}

impl Resp {
    /// `limit` is the most bytes that the reply may have, with what comes before it.
    pub fn new(limit: u64) -> Self {
        Self { state: State::Kind, missing: 1, room: limit, begun: false, is_error: false }
    }

    pub fn is_done(&self) -> bool {
        matches!(self.state, State::Done)
    }

    /// Whether the reply is an error. Errors inside of an aggregate are values.
    pub fn is_error(&self) -> bool {
        self.is_error
    }

    /// Takes `input` up to the end of the reply at most, and returns the number of bytes.
    pub fn advance(&mut self, input: &[u8]) -> Result<usize, Refusal> {
        let mut at = 0;
        while at < input.len() && !self.is_done() {
            let rest = &input[at..];
            let taken = match &mut self.state {
                State::Line => {
                    let is_end = |byte: &u8| matches!(*byte, b'\r' | b'\n');
                    rest.iter().position(is_end).unwrap_or(rest.len())
                }
                State::Data { missing } => {
                    let part = rest.len().min(usize::try_from(*missing).unwrap_or(usize::MAX));
                    *missing -= part as u64;
                    part
                }
                _ => 0,
            };
            if let State::Data { missing: 0 } = self.state {
                self.state = State::DataReturn;
            }
            at += taken;
            self.take_room(taken)?;
            if taken < rest.len() {
                self.take_room(1)?;
                self.state = self.after(rest[taken])?;
                at += 1;
            }
        }
        Ok(at)
    }

    fn take_room(&mut self, bytes: usize) -> Result<(), Refusal> {
        self.room = self.room.checked_sub(bytes as u64).ok_or(Refusal::TooLong)?;
        Ok(())
    }

    fn after(&mut self, byte: u8) -> Result<State, Refusal> {
        Ok(match (self.state, byte) {
            (State::Kind, kind) => self.begin(kind)?,
            (State::Line, b'\r') => State::LineEnd,
            (State::LineEnd | State::DataEnd, b'\n') => self.end(1, 0)?,
            (State::Length { kind, negative: false, value: 0, digits: 0 }, b'-') => {
                State::Length { kind, negative: true, value: 0, digits: 0 }
            }
            (State::Length { kind, negative, value, digits: digits @ ..MOST_DIGITS }, digit)
                if digit.is_ascii_digit() =>
            {
                let value = value * 10 + u64::from(digit - b'0');
                State::Length { kind, negative, value, digits: digits + 1 }
            }
            (State::Length { kind, negative: false, value, digits: 1.. }, b'\r') => {
                State::LengthEnd { kind, value: Some(value) }
            }
            // The null of RESP2.
            (State::Length { kind: kind @ (b'$' | b'*'), value: 1, digits: 1, .. }, b'\r') => {
                State::LengthEnd { kind, value: None }
            }
            (State::LengthEnd { value: None, .. }, b'\n') => self.end(1, 0)?,
            (State::LengthEnd { kind, value: Some(value) }, b'\n') => match kind {
                b'$' | b'!' | b'=' if value.saturating_add(2) > self.room => {
                    return Err(Refusal::TooLong);
                }
                b'$' | b'!' | b'=' if value == 0 => State::DataReturn,
                b'$' | b'!' | b'=' => State::Data { missing: value },
                b'%' => self.end(1, value.saturating_mul(2))?,
                b'>' => self.end(0, value)?,
                b'|' => self.end(0, value.saturating_mul(2))?,
                _ => self.end(1, value)?,
            },
            (State::DataReturn, b'\r') => State::DataEnd,
            _ => return Err(Refusal::Malformed),
        })
    }

    /// An element begins.
    fn begin(&mut self, kind: u8) -> Result<State, Refusal> {
        let before_reply = !self.begun && self.missing == 1;
        if before_reply && !matches!(kind, b'>' | b'|') {
            self.begun = true;
            self.is_error = matches!(kind, b'-' | b'!');
        }
        match kind {
            b'+' | b'-' | b':' | b'_' | b'#' | b',' | b'(' => Ok(State::Line),
            b'>' if !before_reply => Err(Refusal::Malformed),
            b'$' | b'!' | b'=' | b'*' | b'~' | b'%' | b'>' | b'|' => {
                Ok(State::Length { kind, negative: false, value: 0, digits: 0 })
            }
            _ => Err(Refusal::Malformed),
        }
    }

    /// So many elements are complete, and so many more are announced.
    fn end(&mut self, complete: u64, announced: u64) -> Result<State, Refusal> {
        self.missing = (self.missing - complete).saturating_add(announced);
        if self.missing.saturating_mul(LEAST) > self.room {
            return Err(Refusal::TooLong);
        }
        Ok(if self.missing == 0 { State::Done } else { State::Kind })
    }
}

#[cfg(test)]
#[path = "resp_test.rs"]
mod tests;
