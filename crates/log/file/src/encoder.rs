// SPDX-License-Identifier: Apache-2.0
//! Turns the words of a ring into columns: times as differences to the event before, payloads
//! to the one before on the same channel, each column split into its bytes, so that all that
//! repeats stands together.

use crate::columns::{Layout, MARK};
use tare_log_segment::{ChannelId, Record, Records};

/// Buffers for one block at a time, used again for the next.
#[derive(Default)]
pub struct Encoder {
    /// By channel: 1 + its place in the dictionary of this block.
    places: Vec<u16>,
    dictionary: Vec<ChannelId>,
    last: Vec<i64>,
    ids: Vec<u16>,
    ticks: Vec<u64>,
    values: Vec<u64>,
    wide: Vec<[u32; 2]>,
    bytes: Vec<u8>,
    marks: Vec<u8>,
}

/// What a block's header says of its events.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    pub events: u32,
    pub first_ticks: u64,
    pub last_ticks: u64,
    /// Words that were whole records.
    pub words: usize,
    /// The thread at the end, if a record named one.
    pub thread: Option<(u32, [u8; 16])>,
    /// Whether the words after these are no record.
    pub is_damaged: bool,
}

pub const NUMBER: u32 = 1 << 31;

impl Encoder {
    /// Appends the columns of `words` to `out`. `lost` is what the ring's last record of a loss
    /// said, and becomes what the last one here says.
    pub fn encode(&mut self, words: &[u64], lost: &mut u64, out: &mut Vec<u8>) -> Summary {
        self.clear();
        let mut summary = Summary::default();
        let mut before = 0;
        let (mut all_ticks, mut all_values) = (0, 0);
        let mut records = Records::new(words);
        loop {
            let rest = records.rest().len();
            let record = match records.next() {
                Some(Ok(record)) => record,
                Some(Err(_)) => {
                    summary.is_damaged = true;
                    summary.words = words.len() - rest;
                    break;
                }
                None => {
                    summary.words = words.len();
                    break;
                }
            };
            let (ticks, channel, value) = match record {
                Record::Short { ticks, channel, payload } => (ticks, channel, payload),
                Record::Wide { ticks, channel, words, length, is_number } => {
                    let row = self.ticks.len() as u32;
                    let mark = if is_number { NUMBER } else { 0 };
                    self.wide.push([row, length as u32 | mark]);
                    let bytes = words.iter().flat_map(|word| word.to_le_bytes());
                    self.bytes.extend(bytes.take(length));
                    (ticks, channel, 0)
                }
                Record::Thread { ticks, tid, name } => {
                    self.mark(MARK.thread, [ticks, tid.into(), name[0], name[1], 0]);
                    let mut text = [0; 16];
                    text[..8].copy_from_slice(&name[0].to_le_bytes());
                    text[8..].copy_from_slice(&name[1].to_le_bytes());
                    summary.thread = Some((tid, text));
                    continue;
                }
                Record::Loss { ticks, lost: total, first, last } => {
                    let more = total.saturating_sub(*lost);
                    *lost = total.max(*lost);
                    self.mark(MARK.loss, [ticks, more, first, last, 0]);
                    continue;
                }
            };
            if self.ticks.is_empty() {
                summary.first_ticks = ticks;
                before = ticks;
            }
            let place = self.place(channel);
            let last = &mut self.last[place];
            let difference = zigzag(value.wrapping_sub(*last));
            *last = value;
            let later = zigzag(ticks.wrapping_sub(before) as i64);
            before = ticks;
            all_ticks |= later;
            all_values |= difference;
            self.ids.push(place as u16);
            self.ticks.push(later);
            self.values.push(difference);
        }
        summary.events = self.ticks.len() as u32;
        summary.last_ticks = before;
        self.write(summary, all_ticks, all_values, out);
        summary
    }

    fn clear(&mut self) {
        self.places.resize(1 << ChannelId::BITS, 0);
        for channel in self.dictionary.drain(..) {
            self.places[usize::from(channel)] = 0;
        }
        self.last.clear();
        self.ids.clear();
        self.ticks.clear();
        self.values.clear();
        self.wide.clear();
        self.bytes.clear();
        self.marks.clear();
    }

    #[inline]
    fn place(&mut self, channel: ChannelId) -> usize {
        let place = &mut self.places[usize::from(channel)];
        if *place == 0 {
            self.dictionary.push(channel);
            self.last.push(0);
            *place = self.dictionary.len() as u16;
        }
        usize::from(*place - 1)
    }

    fn mark(&mut self, kind: u32, numbers: [u64; 5]) {
        self.marks.extend((self.ticks.len() as u32).to_le_bytes());
        self.marks.extend(kind.to_le_bytes());
        self.marks.extend(numbers.iter().flat_map(|number| number.to_le_bytes()));
    }

    fn write(&self, summary: Summary, all_ticks: u64, all_values: u64, out: &mut Vec<u8>) {
        let layout = Layout {
            rows: self.ticks.len(),
            marks: self.marks.len() / MARK.bytes,
            wide: self.wide.len(),
            bytes: self.bytes.len(),
            dictionary: self.dictionary.len(),
            id_planes: planes(self.dictionary.len().saturating_sub(1) as u64),
            tick_planes: planes(all_ticks),
            value_planes: planes(all_values),
            first_ticks: summary.first_ticks,
        };
        layout.write(out);
        out.extend(self.dictionary.iter().flat_map(|channel| channel.to_le_bytes()));
        out.extend(&self.marks);
        out.extend(self.wide.iter().flatten().flat_map(|number| number.to_le_bytes()));
        for plane in 0..layout.id_planes {
            out.extend(self.ids.iter().map(|id| (id >> (8 * plane)) as u8));
        }
        for plane in 0..layout.tick_planes {
            out.extend(self.ticks.iter().map(|ticks| (ticks >> (8 * plane)) as u8));
        }
        for plane in 0..layout.value_planes {
            out.extend(self.values.iter().map(|value| (value >> (8 * plane)) as u8));
        }
        out.extend(&self.bytes);
    }
}

/// Small numbers of either sign become small ones.
pub fn zigzag(number: i64) -> u64 {
    (number << 1 ^ number >> 63) as u64
}

/// Bytes that are needed for all of the bits.
fn planes(bits: u64) -> usize {
    (u64::BITS - bits.leading_zeros()).div_ceil(8) as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::columns::{Columns, Event, Item, Mark, Payload};
    use proptest::prelude::*;
    use tare_log_segment::record::{
        loss_record, number_tag, short_tag, thread_record, wide_tag, wide_words,
    };

    /// A record as it stands in a ring, and what a reader should see of it.
    #[derive(Clone, Debug)]
    enum One {
        Number(u64, ChannelId, i64),
        Bytes(u64, ChannelId, Vec<u8>),
        Thread(u64, u32),
    }

    impl One {
        fn words(&self) -> Vec<u64> {
            match self {
                Self::Number(ticks, channel, number) => match short_tag(*channel, *number) {
                    Some(tag) => vec![*ticks, tag],
                    None => vec![*ticks, number_tag(*channel), *number as u64, 0],
                },
                Self::Bytes(ticks, channel, bytes) => {
                    let mut words = vec![0; wide_words(bytes.len())];
                    words[0] = *ticks;
                    words[1] = wide_tag(*channel, bytes.len());
                    for (place, byte) in bytes.iter().enumerate() {
                        words[2 + place / 8] |= u64::from(*byte) << (8 * (place % 8));
                    }
                    words
                }
                Self::Thread(ticks, tid) => thread_record(*ticks, *tid, [65, 0]).to_vec(),
            }
        }

        fn item(&self) -> Item<'_> {
            match self {
                Self::Number(ticks, channel, number) => Item::Event(Event {
                    ticks: *ticks,
                    channel: *channel,
                    payload: Payload::Number(*number),
                }),
                Self::Bytes(ticks, channel, bytes) => Item::Event(Event {
                    ticks: *ticks,
                    channel: *channel,
                    payload: Payload::Bytes(bytes),
                }),
                Self::Thread(ticks, tid) => {
                    let mut name = [0; 16];
                    name[0] = 65;
                    Item::Mark(Mark::Thread { ticks: *ticks, tid: *tid, name })
                }
            }
        }
    }

    fn any_record() -> impl Strategy<Value = One> {
        let channel = prop_oneof![0..4u16, any::<u16>()];
        let number = prop_oneof![-9..9i64, any::<i64>()];
        let bytes = proptest::collection::vec(any::<u8>(), 0..40);
        prop_oneof![
            4 => (any::<u64>(), channel.clone(), number).prop_map(|(t, c, n)| One::Number(t, c, n)),
            1 => (any::<u64>(), channel, bytes).prop_map(|(t, c, b)| One::Bytes(t, c, b)),
            1 => (any::<u64>(), any::<u32>()).prop_map(|(t, tid)| One::Thread(t, tid)),
        ]
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(records in proptest::collection::vec(any_record(), 0..300)) {
            let words: Vec<u64> = records.iter().flat_map(One::words).collect();
            let mut encoder = Encoder::default();
            let mut content = Vec::new();
            // A second block must not know of the first.
            encoder.encode(&words, &mut 0, &mut Vec::new());
            let summary = encoder.encode(&words, &mut 0, &mut content);
            prop_assert_eq!(summary.words, words.len());
            let read = Columns::read(&content).unwrap().items().unwrap();
            prop_assert_eq!(read.iter().map(Item::words).sum::<usize>(), words.len());
            let written: Vec<_> = records.iter().map(One::item).collect();
            prop_assert_eq!(read, written);
        }

        #[test]
        fn any_content_is_refused_or_read(content in proptest::collection::vec(any::<u8>(), 0..200)) {
            if let Ok(columns) = Columns::read(&content) {
                let _ = columns.items();
            }
        }
    }

    #[test]
    fn losses_are_told_as_differences() {
        let mut words = loss_record(1, 10, 3, 4).to_vec();
        words.extend(loss_record(2, 15, 5, 6));
        let mut told = 7;
        let mut content = Vec::new();
        Encoder::default().encode(&words, &mut told, &mut content);
        let items = Columns::read(&content).unwrap().items().unwrap();
        let loss = |ticks, lost, first, last| Item::Mark(Mark::Loss { ticks, lost, first, last });
        assert_eq!(items, [loss(1, 3, 3, 4), loss(2, 5, 5, 6)]);
        assert_eq!(told, 15);
    }

    #[test]
    fn a_batch_that_ends_within_a_record_leaves_it_for_the_next() {
        let words = [1, short_tag(1, 1).unwrap(), 2, wide_tag(1, 100), 0, 0];
        let summary = Encoder::default().encode(&words, &mut 0, &mut Vec::new());
        assert_eq!((summary.words, summary.events, summary.is_damaged), (2, 1, true));
    }

    #[test]
    fn what_repeats_takes_little() {
        let words: Vec<u64> =
            (0..1000u64).flat_map(|n| [n * 30, short_tag(3, n as i64).unwrap()]).collect();
        let mut content = Vec::new();
        Encoder::default().encode(&words, &mut 0, &mut content);
        assert!(content.len() < 2_200, "{}", content.len());
    }
}
