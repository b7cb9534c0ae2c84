// SPDX-License-Identifier: Apache-2.0
//! Whether a stream is HTTP, told by its first bytes, however few come at a time.

use crate::connection::Flow;
use core::sync::atomic::Ordering::Relaxed;

/// How a stream of HTTP/1 or HTTP/2 begins, in either direction.
const BEGINNINGS: [&[u8]; 11] = [
    b"GET ",
    b"HEAD ",
    b"POST ",
    b"PUT ",
    b"DELETE ",
    b"CONNECT ",
    b"OPTIONS ",
    b"TRACE ",
    b"PATCH ",
    b"PRI * HTTP/2.0\r\n",
    b"HTTP/",
];

/// Bytes that give an answer.
pub const ENOUGH: usize = 16;

/// The word of a flow: a bit for each beginning that is out, the number of bytes seen from
/// `SEEN` on, and the two answers.
const SEEN: u32 = 16;
const YES: u32 = 1 << 31;
const NO: u32 = 1 << 30;
const ALL_OUT: u32 = (1 << BEGINNINGS.len()) - 1;

impl Flow {
    /// Whether the stream is HTTP, as far as its first bytes tell: one that began like it and
    /// has not said more yet counts as HTTP.
    #[inline]
    pub fn is_http(&self) -> bool {
        self.http.load(Relaxed) & NO == 0
    }

    /// Whether there is no answer yet.
    #[inline]
    pub fn is_open(&self) -> bool {
        self.http.load(Relaxed) & (YES | NO) == 0
    }

    /// Looks at the next bytes, until there is an answer.
    #[inline]
    pub fn look(&self, bytes: &[u8]) {
        if self.is_open() {
            self.http.store(look(self.http.load(Relaxed), bytes), Relaxed);
        }
    }
}

fn look(mut word: u32, bytes: &[u8]) -> u32 {
    for byte in bytes {
        let seen = (word >> SEEN & 0xff) as usize;
        for (number, beginning) in BEGINNINGS.iter().enumerate() {
            if word & 1 << number != 0 {
                continue;
            }
            if beginning.get(seen) != Some(byte) {
                word |= 1 << number;
            } else if seen + 1 == beginning.len() {
                return YES;
            }
        }
        if word & ALL_OUT == ALL_OUT {
            return NO;
        }
        word += 1 << SEEN;
    }
    word
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_http(parts: &[&[u8]]) -> bool {
        let flow = Flow::default();
        parts.iter().for_each(|part| flow.look(part));
        flow.is_http()
    }

    #[test]
    fn requests_and_answers_are_http() {
        for text in ["GET / HTTP/1.1\r\n", "DELETE /x", "HTTP/1.0 200 OK", "PRI * HTTP/2.0\r\n\r\n"]
        {
            assert!(is_http(&[text.as_bytes()]), "{text}");
            let bytes: Vec<&[u8]> = text.as_bytes().chunks(1).collect();
            assert!(is_http(&bytes), "{text} byte by byte");
        }
    }

    #[test]
    fn other_protocols_are_not() {
        for text in ["GETX / HTTP/1.1", "get / HTTP/1.1", "*1\r\n$4\r\nPING\r\n", "\x16\x03\x01"] {
            assert!(!is_http(&[text.as_bytes()]), "{text}");
        }
        assert!(!is_http(&[b"GE", b"X"]));
    }

    #[test]
    fn the_answer_stays() {
        assert!(is_http(&[b"GET /", b"\0\0\0"]));
        assert!(!is_http(&[b"\0", b"GET / HTTP/1.1"]));
    }
}
