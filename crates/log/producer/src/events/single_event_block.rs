// SPDX-License-Identifier: Apache-2.0
use crate::events::event::Payload;
use tare_log_segment::ChannelId;
use tare_log_segment::block::{HEADER, Header, SUMMED, sum, sum_on};
use tare_log_segment::record::LONGEST;

/// Bytes before the columns, see docs/formats/log.md.
const LAYOUT: usize = 40;
/// The dictionary of one channel, and one wide row.
const REST: usize = 2 + 8;

/// A number's bytes.
const NUMBER: usize = 8;

/// A block with a single event, not compressed. The bytes of the event, which are its end, stay where
/// the program has them.
pub struct Single {
    bytes: [u8; HEADER + LAYOUT + REST + NUMBER],
    length: usize,
}

impl Single {
    pub fn new() -> Self {
        Self { bytes: [0; HEADER + LAYOUT + REST + NUMBER], length: HEADER }
    }

    /// The block in two parts, with what the header does not say yet.
    pub fn write<'all>(
        &'all mut self,
        header: Header,
        ticks: u64,
        channel: ChannelId,
        payload: Payload<'all>,
    ) -> [&'all [u8]; 2] {
        let (number, text) = match payload {
            Payload::Number(number) => (number, &[][..]),
            Payload::Bytes(bytes) => (0, &bytes[..bytes.len().min(LONGEST)]),
        };
        let is_wide = matches!(payload, Payload::Bytes(_));
        let value = (number << 1 ^ number >> 63) as u64;
        let planes = (u64::BITS - value.leading_zeros()).div_ceil(8);
        // One row; no marks; so many wide rows, bytes of them, and channels.
        for number in [1, 0, is_wide.into(), text.len() as u32, 1] {
            self.add(&number.to_le_bytes());
        }
        // The only tick is the first, the only channel the first of the dictionary.
        self.add(&[0, 0, planes as u8, 0]);
        self.add(&[0; 8]);
        self.add(&ticks.to_le_bytes());
        self.add(&channel.to_le_bytes());
        if is_wide {
            self.add(&0u32.to_le_bytes());
            self.add(&(text.len() as u32).to_le_bytes());
        }
        self.add(&value.to_le_bytes()[..planes as usize]);
        let length = (self.length - HEADER + text.len()) as u32;
        let header = Header {
            stored: length,
            raw: length,
            events: 1,
            first_ticks: ticks,
            last_ticks: ticks,
            ..header
        };
        self.bytes[..HEADER].copy_from_slice(&header.bytes());
        let sum = sum_on(sum(&self.bytes[SUMMED..self.length]), text);
        self.bytes[SUMMED - 4..SUMMED].copy_from_slice(&sum.to_le_bytes());
        [&self.bytes[..self.length], text]
    }

    fn add(&mut self, bytes: &[u8]) {
        self.bytes[self.length..self.length + bytes.len()].copy_from_slice(bytes);
        self.length += bytes.len();
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::vec;
    use std::vec::Vec;
    use tare_log_file::{Event, Events, Item, Kind, Reader};

    #[test]
    fn readers_of_files_read_it() {
        let long = vec![7; LONGEST + 1];
        for payload in [
            Payload::Number(0),
            Payload::Number(-1),
            Payload::Number(i64::MIN),
            Payload::Number(i64::MAX),
            Payload::Bytes(b""),
            Payload::Bytes(b"text"),
            Payload::Bytes(&long),
        ] {
            let mut block = Single::new();
            let header = Header { ring: 1025, tid: 77, ..Header::of(Kind::Events, 5) };
            let bytes = block.write(header, 1 << 60, 9, payload).concat();
            let blocks: Vec<_> = Reader::new(&*bytes).map(Result::unwrap).collect();
            let [block] = &blocks[..] else { panic!("{payload:?}: {}", blocks.len()) };
            assert_eq!((block.header.ring, block.header.tid, block.header.events), (1025, 77, 1));
            let expected = match payload {
                Payload::Number(number) => tare_log_file::Payload::Number(number),
                Payload::Bytes(bytes) => {
                    tare_log_file::Payload::Bytes(&bytes[..bytes.len().min(LONGEST)])
                }
            };
            let event = Event { ticks: 1 << 60, channel: 9, payload: expected };
            let events = Events::of(block).unwrap();
            assert_eq!(events.items(), Ok(vec![Item::Event(event)]), "{payload:?}");
        }
    }
}
