// SPDX-License-Identifier: Apache-2.0
//! The header of a block in a file of events. It stands here because programs write blocks as
//! well, see `Handler::Id`.

use crate::Codec;

/// What each block begins with, so that a reader finds the next one behind damage.
pub const MAGIC: [u8; 4] = *b"TLBK";

/// Bytes of a header.
pub const HEADER: usize = 96;

/// The checksum is of a block's bytes from here on.
pub const SUMMED: usize = 8;

/// Bytes of the largest block that a writer makes, stored or unpacked.
pub const LARGEST: usize = 64 << 20;

/// What a block holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u16)]
pub enum Kind {
    /// A process that logs, as JSON; its number in the file is the header's `process`.
    Process = 1,
    /// Channels that were opened or changed since, as JSON.
    Channels = 2,
    /// One moment by all clocks.
    Clock = 3,
    /// Events of one ring.
    Events = 4,
    /// How a process ended, as JSON: no events of it follow.
    End = 5,
    /// How the clocks of two machines stand to each other, as JSON.
    Relation = 6,
}

const KINDS: [Kind; 6] =
    [Kind::Process, Kind::Channels, Kind::Clock, Kind::Events, Kind::End, Kind::Relation];

/// In the place of a codec.
const PARTS: u16 = 0;

/// What stands before the content of a block. Numbers are little-endian.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    pub kind: Kind,
    /// `None` where the content is in parts, each with its own.
    pub codec: Option<Codec>,
    /// Bytes of the content as it is stored, and unpacked.
    pub stored: u32,
    pub raw: u32,
    pub process: u32,
    /// Of events: the ring, the words of it (counted from its beginning) that are here, and the
    /// thread at the first of them.
    pub ring: u32,
    pub tid: u32,
    pub from: u64,
    pub to: u64,
    pub events: u32,
    /// Virtual threads are among those whose they are.
    pub is_carried: bool,
    pub first_ticks: u64,
    pub last_ticks: u64,
    pub thread: [u8; 16],
    /// Events of the ring lost that blocks before this one tell of.
    pub told: u64,
}

impl Header {
    /// That of a block which holds no events.
    pub fn of(kind: Kind, process: u32) -> Self {
        Self {
            kind,
            codec: Some(Codec::None),
            stored: 0,
            raw: 0,
            process,
            ring: 0,
            tid: 0,
            from: 0,
            to: 0,
            events: 0,
            is_carried: false,
            first_ticks: 0,
            last_ticks: 0,
            thread: [0; 16],
            told: 0,
        }
    }

    /// Its bytes, but for the checksum: that is of all behind it, from `SUMMED` on, and stands
    /// just before.
    pub fn bytes(&self) -> [u8; HEADER] {
        let codec = self.codec.map_or(PARTS, |codec| codec as u16);
        let mut bytes = [0; HEADER];
        bytes[..4].copy_from_slice(&MAGIC);
        bytes[8..10].copy_from_slice(&(self.kind as u16).to_le_bytes());
        bytes[10..12].copy_from_slice(&codec.to_le_bytes());
        let numbers = [self.stored, self.raw, self.process, self.ring, self.tid];
        for (place, number) in bytes[12..32].chunks_exact_mut(4).zip(numbers) {
            place.copy_from_slice(&number.to_le_bytes());
        }
        for (at, number) in [
            (32, self.from),
            (40, self.to),
            (48, u64::from(self.is_carried) << 32 | u64::from(self.events)),
            (56, self.first_ticks),
            (64, self.last_ticks),
            (88, self.told),
        ] {
            bytes[at..at + 8].copy_from_slice(&number.to_le_bytes());
        }
        bytes[72..88].copy_from_slice(&self.thread);
        bytes
    }

    /// The header in `bytes` and its checksum, `None` where they are none.
    pub fn read(bytes: &[u8; HEADER]) -> Option<(Self, u32)> {
        let u16_at = |at: usize| u16::from_le_bytes([bytes[at], bytes[at + 1]]);
        let u32_at = |at: usize| u32::from_le_bytes(core::array::from_fn(|byte| bytes[at + byte]));
        let u64_at = |at: usize| u64::from_le_bytes(core::array::from_fn(|byte| bytes[at + byte]));
        if bytes[..4] != MAGIC {
            return None;
        }
        let header = Self {
            kind: KINDS.into_iter().find(|kind| *kind as u16 == u16_at(8))?,
            codec: match u16_at(10) {
                PARTS => None,
                number => Some(Codec::numbered(number)?),
            },
            stored: u32_at(12),
            raw: u32_at(16),
            process: u32_at(20),
            ring: u32_at(24),
            tid: u32_at(28),
            from: u64_at(32),
            to: u64_at(40),
            events: u32_at(48),
            is_carried: u32_at(52) & 1 != 0,
            first_ticks: u64_at(56),
            last_ticks: u64_at(64),
            thread: core::array::from_fn(|byte| bytes[72 + byte]),
            told: u64_at(88),
        };
        let fits = |length: u32| length as usize <= LARGEST;
        (fits(header.stored) && fits(header.raw)).then_some((header, u32_at(4)))
    }
}

/// CRC-32C, eight bytes a step, as the file's library has it by instructions that not every
/// processor has.
pub fn sum(bytes: &[u8]) -> u32 {
    sum_on(0, bytes)
}

/// The checksum of what `sum` is of, with these bytes behind it.
pub fn sum_on(sum: u32, bytes: &[u8]) -> u32 {
    let (steps, rest) = bytes.as_chunks::<8>();
    let sum = steps.iter().fold(!sum, |sum, step| {
        let word = u64::from_le_bytes(*step) ^ u64::from(sum);
        let bytes = word.to_le_bytes().into_iter().rev();
        bytes.zip(&TABLES).fold(0, |sum, (byte, table)| sum ^ table[usize::from(byte)])
    });
    !rest.iter().fold(sum, |sum, byte| sum >> 8 ^ TABLES[0][usize::from(sum as u8 ^ byte)])
}

/// By how many bytes follow in the step: what a byte does to the sum.
static TABLES: [[u32; 256]; 8] = {
    let mut tables = [[0; 256]; 8];
    let mut at = 0;
    while at < 8 * 256 {
        let (table, byte) = (at / 256, at % 256);
        let mut sum = byte as u32;
        if table > 0 {
            sum = tables[table - 1][byte];
            sum = sum >> 8 ^ tables[0][(sum & 0xff) as usize];
        } else {
            let mut bit = 0;
            while bit < 8 {
                sum = sum >> 1 ^ if sum & 1 == 1 { 0x82f6_3b78 } else { 0 };
                bit += 1;
            }
        }
        tables[table][byte] = sum;
        at += 1;
    }
    tables
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_is_read_as_written() {
        let header = Header {
            codec: None,
            stored: 3,
            raw: 9,
            ring: 2,
            tid: 77,
            from: 1 << 40,
            to: (1 << 40) + 6,
            events: 3,
            first_ticks: u64::MAX,
            last_ticks: 1,
            thread: *b"worker-1\0\0\0\0\0\0\0\0",
            told: 17,
            ..Header::of(Kind::Events, 5)
        };
        assert_eq!(Header::read(&header.bytes()), Some((header, 0)));
    }

    #[test]
    fn what_no_writer_makes_is_no_header() {
        let good = Header::of(Kind::End, 1).bytes();
        assert!(Header::read(&good).is_some());
        for (at, byte) in [(0, b'x'), (8, 0), (8, 7), (10, 5), (10, 9), (15, 0xff), (19, 0xff)] {
            let mut bad = good;
            bad[at] = byte;
            assert_eq!(Header::read(&bad), None, "{at}");
        }
    }
}
