// SPDX-License-Identifier: Apache-2.0
use std::io;
use tare_log_segment::Codec;

/// What each block begins with, so that a reader finds the next one behind damage.
pub const MAGIC: [u8; 4] = *b"TLBK";

/// Bytes of a header.
pub const HEADER: usize = 96;

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
            first_ticks: 0,
            last_ticks: 0,
            thread: [0; 16],
            told: 0,
        }
    }

    /// The whole block: this header, with lengths and checksum, and `content` as it is stored.
    pub fn before(mut self, content: &[u8]) -> io::Result<Vec<u8>> {
        let too_large = || io::Error::other("a block is too large");
        self.stored = u32::try_from(content.len()).map_err(|_| too_large())?;
        let mut block = Vec::with_capacity(HEADER + content.len());
        block.extend(MAGIC);
        block.extend([0; 4]);
        block.extend((self.kind as u16).to_le_bytes());
        block.extend(self.codec.map_or(PARTS, |codec| codec as u16).to_le_bytes());
        for number in [self.stored, self.raw, self.process, self.ring, self.tid] {
            block.extend(number.to_le_bytes());
        }
        block.extend(self.from.to_le_bytes());
        block.extend(self.to.to_le_bytes());
        block.extend(self.events.to_le_bytes());
        block.extend([0; 4]);
        block.extend(self.first_ticks.to_le_bytes());
        block.extend(self.last_ticks.to_le_bytes());
        block.extend(self.thread);
        block.extend(self.told.to_le_bytes());
        debug_assert_eq!(block.len(), HEADER);
        block.extend(content);
        let sum = crc32c::crc32c(&block[8..]);
        block[4..8].copy_from_slice(&sum.to_le_bytes());
        Ok(block)
    }

    /// The header in `bytes` and its checksum, `None` where they are none.
    pub fn read(bytes: &[u8; HEADER]) -> Option<(Self, u32)> {
        let u16_at = |at: usize| u16::from_le_bytes([bytes[at], bytes[at + 1]]);
        let u32_at = |at: usize| u32::from_le_bytes(std::array::from_fn(|byte| bytes[at + byte]));
        let u64_at = |at: usize| u64::from_le_bytes(std::array::from_fn(|byte| bytes[at + byte]));
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
            first_ticks: u64_at(56),
            last_ticks: u64_at(64),
            thread: std::array::from_fn(|byte| bytes[72 + byte]),
            told: u64_at(88),
        };
        let fits = |length: u32| length as usize <= LARGEST;
        (fits(header.stored) && fits(header.raw)).then_some((header, u32_at(4)))
    }
}

/// A block as it was read, whose checksum is right.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Block {
    pub header: Header,
    /// As it is stored.
    pub content: Vec<u8>,
}

impl Block {
    /// How many it has in the file.
    pub fn bytes(&self) -> u64 {
        (HEADER + self.content.len()) as u64
    }
}

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
        let block = header.before(b"abc").unwrap();
        let (read, sum) = Header::read(block[..HEADER].try_into().unwrap()).unwrap();
        assert_eq!(read, header);
        assert_eq!(sum, crc32c::crc32c(&block[8..]));
        assert_eq!(&block[HEADER..], b"abc");
    }

    #[test]
    fn what_no_writer_makes_is_no_header() {
        let good: [u8; HEADER] = Header::of(Kind::End, 1).before(b"").unwrap().try_into().unwrap();
        assert!(Header::read(&good).is_some());
        for (at, byte) in [(0, b'x'), (8, 0), (8, 7), (10, 5), (10, 9), (15, 0xff), (19, 0xff)] {
            let mut bad = good;
            bad[at] = byte;
            assert_eq!(Header::read(&bad), None, "{at}");
        }
    }
}
