// SPDX-License-Identifier: Apache-2.0
//! What an end asks a start over the network, and how it is answered: 40 bytes.

use crate::record::ChannelId;

/// Set in the number of a channel: what was learned of its probes is on a channel of its own.
pub const ANSWERS: ChannelId = 1 << 15;

pub const BYTES: usize = 40;

const QUESTION: u64 = u64::from_le_bytes(*b"TAREfox?");
const ANSWER: u64 = u64::from_le_bytes(*b"TAREfox!");

/// The answer is the question but for its first word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Probe {
    pub is_answer: bool,
    /// Of the channel's events, from 0 on.
    pub number: u64,
    /// Of the event, as its program counts them.
    pub ticks: u64,
    /// CLOCK_MONOTONIC_RAW of who asks.
    pub sent_ns: u64,
    pub payload: i64,
}

impl Probe {
    pub fn bytes(self) -> [u8; BYTES] {
        let kind = if self.is_answer { ANSWER } else { QUESTION };
        let words = [kind, self.number, self.ticks, self.sent_ns, self.payload as u64];
        let mut bytes = [0; BYTES];
        for (place, word) in bytes.chunks_exact_mut(8).zip(words) {
            place.copy_from_slice(&word.to_le_bytes());
        }
        bytes
    }

    /// `None` for what is no probe.
    pub fn read(bytes: &[u8]) -> Option<Self> {
        let bytes: &[u8; BYTES] = bytes.try_into().ok()?;
        let word =
            |index: usize| u64::from_le_bytes(core::array::from_fn(|byte| bytes[8 * index + byte]));
        let is_answer = word(0) == ANSWER;
        (is_answer || word(0) == QUESTION).then_some(Self {
            is_answer,
            number: word(1),
            ticks: word(2),
            sent_ns: word(3),
            payload: word(4) as i64,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_probe_is_read_as_it_was_sent() {
        let question =
            Probe { is_answer: false, number: 7, ticks: u64::MAX, sent_ns: 1, payload: -5 };
        for probe in [question, Probe { is_answer: true, ..question }] {
            assert_eq!(Probe::read(&probe.bytes()), Some(probe));
        }
        assert_eq!(Probe::read(&question.bytes()[1..]), None);
        assert_eq!(Probe::read(&[7; BYTES]), None);
    }
}
