// SPDX-License-Identifier: Apache-2.0
use crate::Refusal;

/// The text that replies end with, prepared for the search of Knuth, Morris and Pratt (1977),
/// which never goes back in its input.
#[derive(Debug, Clone)]
pub struct Until {
    text: Vec<u8>,
    /// For each length of a part that matched: the longest shorter part that matches, too.
    shorter: Vec<usize>,
}

/// The search in one reply.
#[derive(Debug, Clone)]
pub struct Search {
    matched: usize,
    /// Bytes that the reply may still have.
    room: u64,
}

impl Until {
    /// `None` of an empty text, which would end every reply before it begins.
    pub fn new(text: &[u8]) -> Option<Self> {
        let (first, rest) = text.split_first()?;
        let mut until = Self { text: vec![*first], shorter: vec![0, 0] };
        for byte in rest {
            let longest = until.shorter[until.text.len()];
            let next = until.after(longest, *byte);
            until.text.push(*byte);
            until.shorter.push(next);
        }
        Some(until)
    }

    /// How much of the text has matched when `byte` follows a match of `matched` bytes.
    fn after(&self, mut matched: usize, byte: u8) -> usize {
        while self.text[matched] != byte {
            if matched == 0 {
                return 0;
            }
            matched = self.shorter[matched];
        }
        matched + 1
    }
}

impl Search {
    /// `limit` is the most bytes that a reply may have.
    pub fn new(limit: u64) -> Self {
        Self { matched: 0, room: limit }
    }

    /// Takes `input` up to the end of the reply at most: the number of bytes, and whether that
    /// was the end.
    pub fn advance(&mut self, input: &[u8], until: &Until) -> Result<(usize, bool), Refusal> {
        let mut at = 0;
        while at < input.len() && self.matched < until.text.len() {
            if self.matched == 0 {
                let first = until.text[0];
                at += input[at..].iter().position(|byte| *byte == first).unwrap_or(input.len());
            }
            let Some(byte) = input.get(at) else { break };
            self.matched = until.after(self.matched, *byte);
            at += 1;
        }
        let taken = at.min(input.len());
        self.room = self.room.checked_sub(taken as u64).ok_or(Refusal::TooLong)?;
        Ok((taken, self.matched == until.text.len()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: u64 = 1000;

    /// The end of a reply that comes in these pieces.
    fn end(text: &[u8], pieces: &[&[u8]]) -> Option<usize> {
        let until = Until::new(text).unwrap();
        let mut search = Search::new(LIMIT);
        let mut before = 0;
        for piece in pieces {
            let (taken, is_end) = search.advance(piece, &until).unwrap();
            if is_end {
                return Some(before + taken);
            }
            assert_eq!(taken, piece.len());
            before += taken;
        }
        None
    }

    /// All texts of these lengths over two letters.
    fn texts(lengths: std::ops::RangeInclusive<usize>) -> impl Iterator<Item = Vec<u8>> {
        lengths.flat_map(|length| {
            (0..1u32 << length).map(move |bits| {
                (0..length).map(|at| if bits >> at & 1 == 0 { b'a' } else { b'b' }).collect()
            })
        })
    }

    #[test]
    fn the_first_match_is_the_end_at_every_split() {
        for text in texts(1..=4) {
            for input in texts(0..=8) {
                let first = input.windows(text.len()).position(|window| window == text);
                let expected = first.map(|at| at + text.len());
                for split in 0..=input.len() {
                    let (begin, rest) = input.split_at(split);
                    assert_eq!(end(&text, &[begin, rest]), expected, "{text:?} {input:?} {split}");
                }
                let bytes: Vec<_> = input.chunks(1).collect();
                assert_eq!(end(&text, &bytes), expected, "{text:?} {input:?}");
            }
        }
    }

    #[test]
    fn a_reply_above_its_limit_is_refused() {
        let until = Until::new(b"\r\n").unwrap();
        let mut search = Search::new(4);
        assert_eq!(search.advance(b"abc", &until), Ok((3, false)));
        assert_eq!(search.clone().advance(b"\r\n", &until), Err(Refusal::TooLong));
        assert_eq!(search.advance(b"de", &until), Err(Refusal::TooLong));
        assert_eq!(Search::new(4).advance(b"ab\r\nmore", &until), Ok((4, true)));
    }

    #[test]
    fn an_empty_text_is_no_end() {
        assert!(Until::new(b"").is_none());
    }
}
