// SPDX-License-Identifier: Apache-2.0

/// What came is not a response that HTTP/1.1 allows.
#[derive(Debug, PartialEq, Eq)]
pub struct Malformed;

/// The chunked transfer coding (RFC 9112, section 7.1), in whatever pieces it comes.
#[derive(Debug)]
pub struct Chunked {
    state: State,
}

#[derive(Debug, Clone, Copy)]
enum State {
    Size {
        value: u64,
        digits: u32,
    },
    Extension {
        size: u64,
    },
    SizeEnd {
        size: u64,
    },
    Data {
        missing: u64,
    },
    DataReturn,
    DataEnd,
    /// A line of the trailer of which so much has come.
    Trailer {
        empty: bool,
    },
    TrailerEnd {
        empty: bool,
    },
    Done,
}

impl Chunked {
    pub fn new() -> Self {
        Self { state: State::Size { value: 0, digits: 0 } }
    }

    pub fn is_done(&self) -> bool {
        matches!(self.state, State::Done)
    }

    /// Takes `input` up to the end of the body at most, hands its data to `data` and
    /// says how many bytes were taken.
    pub fn advance(
        &mut self,
        input: &[u8],
        mut data: impl FnMut(&[u8]),
    ) -> Result<usize, Malformed> {
        let mut at = 0;
        while at < input.len() && !self.is_done() {
            if let State::Data { missing } = self.state {
                let rest = &input[at..];
                let part = rest.len().min(usize::try_from(missing).unwrap_or(usize::MAX));
                data(&rest[..part]);
                at += part;
                let missing = missing - part as u64;
                self.state = if missing == 0 { State::DataReturn } else { State::Data { missing } };
            } else {
                self.state = self.state.after(input[at])?;
                at += 1;
            }
        }
        Ok(at)
    }
}

impl State {
    fn after(self, byte: u8) -> Result<Self, Malformed> {
        Ok(match (self, byte) {
            (Self::Size { value, digits }, byte) if byte.is_ascii_hexdigit() && digits < 16 => {
                let digit = (byte as char).to_digit(16).map_or(0, u64::from);
                Self::Size { value: value << 4 | digit, digits: digits + 1 }
            }
            (Self::Size { value, digits: 1.. }, b'\r') => Self::SizeEnd { size: value },
            (Self::Size { value, digits: 1.. }, b';' | b' ' | b'\t') => {
                Self::Extension { size: value }
            }
            (Self::Extension { size }, b'\r') => Self::SizeEnd { size },
            (Self::Extension { size }, byte) if byte != b'\n' => Self::Extension { size },
            (Self::SizeEnd { size: 0 }, b'\n') => Self::Trailer { empty: true },
            (Self::SizeEnd { size }, b'\n') => Self::Data { missing: size },
            (Self::DataReturn, b'\r') => Self::DataEnd,
            (Self::DataEnd, b'\n') => Self::Size { value: 0, digits: 0 },
            (Self::Trailer { empty }, b'\r') => Self::TrailerEnd { empty },
            (Self::Trailer { .. }, byte) if byte != b'\n' => Self::Trailer { empty: false },
            (Self::TrailerEnd { empty: true }, b'\n') => Self::Done,
            (Self::TrailerEnd { empty: false }, b'\n') => Self::Trailer { empty: true },
            _ => return Err(Malformed),
        })
    }
}
