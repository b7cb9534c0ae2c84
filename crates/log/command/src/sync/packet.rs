// SPDX-License-Identifier: Apache-2.0
//! What goes over the network (docs/formats/log-sync.md). A question is as long as its answer, so
//! that nobody can have a server send more than was sent to it.

use tare_log_file::Boot;

pub const BYTES: usize = 120;
pub const VERSION: u16 = 1;

const MAGIC: [u8; 4] = *b"TSYN";
const QUESTION: u16 = 1;
const ANSWER: u16 = 2;

/// Bytes of a host's name; what is longer is cut off.
const NAME: usize = 64;

/// What the server knows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Answer {
    /// Of the question.
    pub number: u64,
    /// CLOCK_MONOTONIC_RAW when the question had come, and just before this was sent.
    pub received_ns: i64,
    pub sent_ns: i64,
    /// CLOCK_REALTIME when the question had come.
    pub realtime_ns: i64,
    pub boot: Boot,
    pub host: String,
}

/// Why a packet is not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// It is none of these.
    Other,
    Version(u16),
}

pub fn question(number: u64) -> [u8; BYTES] {
    begin(QUESTION, number)
}

fn begin(kind: u16, number: u64) -> [u8; BYTES] {
    let mut packet = [0; BYTES];
    packet[..4].copy_from_slice(&MAGIC);
    packet[4..6].copy_from_slice(&VERSION.to_le_bytes());
    packet[6..8].copy_from_slice(&kind.to_le_bytes());
    packet[8..16].copy_from_slice(&number.to_le_bytes());
    packet
}

/// The number of a question.
pub fn read_question(packet: &[u8]) -> Result<u64, Refused> {
    let packet = read(packet, QUESTION)?;
    Ok(u64::from_le_bytes(std::array::from_fn(|byte| packet[8 + byte])))
}

/// The packet, if it is one of this kind and version.
fn read(packet: &[u8], kind: u16) -> Result<&[u8; BYTES], Refused> {
    let begin: &[u8; 8] = packet.first_chunk().ok_or(Refused::Other)?;
    let [.., low, high, kind_low, kind_high] = *begin;
    if begin[..4] != MAGIC || u16::from_le_bytes([kind_low, kind_high]) != kind {
        return Err(Refused::Other);
    }
    match u16::from_le_bytes([low, high]) {
        VERSION => packet.try_into().map_err(|_| Refused::Other),
        other => Err(Refused::Version(other)),
    }
}

impl Answer {
    pub fn bytes(&self) -> [u8; BYTES] {
        let mut packet = begin(ANSWER, self.number);
        let times = [self.received_ns, self.sent_ns, self.realtime_ns];
        for (place, time) in packet[16..40].chunks_exact_mut(8).zip(times) {
            place.copy_from_slice(&time.to_le_bytes());
        }
        packet[40..56].copy_from_slice(&self.boot.0);
        for (place, letter) in packet[56..].iter_mut().zip(self.host.as_bytes()) {
            *place = *letter;
        }
        packet
    }

    /// CLOCK_REALTIME when CLOCK_MONOTONIC_RAW said this; `None` where nothing can say it.
    pub fn realtime_at(&self, monotonic_ns: i64) -> Option<i64> {
        self.realtime_ns.checked_add(monotonic_ns.checked_sub(self.received_ns)?)
    }

    pub fn read(packet: &[u8]) -> Result<Self, Refused> {
        let packet = read(packet, ANSWER)?;
        let time = |at: usize| i64::from_le_bytes(std::array::from_fn(|byte| packet[at + byte]));
        let name = &packet[BYTES - NAME..];
        let end = name.iter().position(|byte| *byte == 0).unwrap_or(NAME);
        Ok(Self {
            number: time(8) as u64,
            received_ns: time(16),
            sent_ns: time(24),
            realtime_ns: time(32),
            boot: Boot(std::array::from_fn(|byte| packet[40 + byte])),
            host: String::from_utf8_lossy(&name[..end]).into_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_are_read_as_written() {
        assert_eq!(read_question(&question(7)), Ok(7));
        let answer = Answer {
            number: u64::MAX,
            received_ns: -1,
            sent_ns: i64::MAX,
            realtime_ns: 3,
            boot: Boot([9; 16]),
            host: "x".repeat(NAME),
        };
        assert_eq!(Answer::read(&answer.bytes()), Ok(answer.clone()));
        let short = Answer { host: "b".to_owned(), ..answer };
        assert_eq!(Answer::read(&short.bytes()), Ok(short));
    }

    #[test]
    fn what_is_no_packet_is_refused() {
        let good = question(7);
        assert_eq!(Answer::read(&good), Err(Refused::Other), "a question is no answer");
        for length in 0..BYTES {
            assert_eq!(read_question(&good[..length]), Err(Refused::Other));
        }
        let mut other = good;
        other[4] = 2;
        assert_eq!(read_question(&other), Err(Refused::Version(2)));
        assert_eq!(read_question(&other[..40]), Err(Refused::Version(2)));
        other[0] = b'x';
        assert_eq!(read_question(&other), Err(Refused::Other));
    }
}
