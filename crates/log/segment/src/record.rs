// SPDX-License-Identifier: Apache-2.0
//! Records in a ring: two words each, or more for payloads that do not fit.
//!
//! The first word is the time in ticks. The second is the tag: kind in bits 0 and 1, channel in
//! bits 2 to 17, and the payload, or its length, in the other 46.

/// Words of an event whose payload fits into its tag.
pub const SHORT_WORDS: usize = 2;

/// Words of a record that is no event.
pub const MARK_WORDS: usize = 6;

/// Bytes of the longest payload.
pub const LONGEST: usize = 4096;

const SHORT: u64 = 1;
const WIDE: u64 = 2;
const CONTROL: u64 = 3;
const CHANNEL_SHIFT: u32 = 2;
const PAYLOAD_SHIFT: u32 = 18;

/// What stands in the place of the channel in a record that is no event.
mod control {
    pub const THREAD: u16 = 1;
    pub const LOSS: u16 = 2;
}

/// A channel's number in its process. 0 is no channel.
pub type ChannelId = u16;

/// The tag of an event, `None` where the payload needs a wide record.
#[inline(always)]
pub const fn short_tag(channel: ChannelId, payload: i64) -> Option<u64> {
    let shifted = payload << PAYLOAD_SHIFT;
    if shifted >> PAYLOAD_SHIFT != payload {
        return None;
    }
    Some(shifted as u64 | (channel as u64) << CHANNEL_SHIFT | SHORT)
}

/// Channel and payload of an event whose payload stands in its tag.
#[inline(always)]
pub const fn short(tag: u64) -> Option<(ChannelId, i64)> {
    if tag & 3 != SHORT {
        return None;
    }
    Some(((tag >> CHANNEL_SHIFT) as ChannelId, tag as i64 >> PAYLOAD_SHIFT))
}

/// The tag of an event with a payload of `length` bytes, which follow in whole words, and
/// in an even number of them.
pub const fn wide_tag(channel: ChannelId, length: usize) -> u64 {
    (length as u64) << PAYLOAD_SHIFT | (channel as u64) << CHANNEL_SHIFT | WIDE
}

/// The tag of an event with a number that does not fit, which follows in one word and an
/// empty one.
pub const fn number_tag(channel: ChannelId) -> u64 {
    wide_tag(channel, NUMBER | 8)
}

/// In the length of a wide record: its bytes are one number.
const NUMBER: usize = 1 << 20;

/// Words of a wide record with a payload of `length` bytes.
pub const fn wide_words(length: usize) -> usize {
    SHORT_WORDS + length.div_ceil(16) * 2
}

/// Bytes as the words behind the tag of a wide record.
pub fn payload_words(bytes: &[u8]) -> impl Iterator<Item = u64> {
    (0..wide_words(bytes.len()) - SHORT_WORDS).map(|place| {
        let rest = bytes.get(8 * place..).unwrap_or(&[]);
        let part = &rest[..rest.len().min(8)];
        let mut whole = [0; 8];
        whole[..part.len()].copy_from_slice(part);
        u64::from_le_bytes(whole)
    })
}

const fn control_tag(what: u16, words: usize) -> u64 {
    (words as u64) << PAYLOAD_SHIFT | (what as u64) << CHANNEL_SHIFT | CONTROL
}

/// From here on, events of the ring are those of thread `tid`.
pub const fn thread_record(ticks: u64, tid: u32, name: [u64; 2]) -> [u64; 6] {
    [ticks, control_tag(control::THREAD, 4), tid as u64, 0, name[0], name[1]]
}

/// Events of the ring that were lost up to here, since it was made; the first and the last
/// since the record before.
pub const fn loss_record(ticks: u64, lost: u64, first: u64, last: u64) -> [u64; 6] {
    [ticks, control_tag(control::LOSS, 4), lost, 0, first, last]
}

/// Words of the record with this tag, `None` where no writer makes such a one.
pub fn words(tag: u64) -> Option<usize> {
    let length = (tag >> PAYLOAD_SHIFT) as usize;
    match tag & 3 {
        SHORT => Some(SHORT_WORDS),
        WIDE if length == NUMBER | 8 => Some(wide_words(8)),
        WIDE if length <= LONGEST => Some(wide_words(length)),
        CONTROL if length == 4 => Some(SHORT_WORDS + length),
        _ => None,
    }
}

/// Whether the record with this tag is an event.
pub fn is_event(tag: u64) -> bool {
    matches!(tag & 3, SHORT | WIDE)
}

/// Whether the record with this tag says whose events follow.
pub fn is_thread(tag: u64) -> bool {
    tag == control_tag(control::THREAD, 4)
}

/// Whether a thread of this number is one that the kernel does not know.
pub fn is_virtual(tid: u32) -> bool {
    tid >> 31 != 0
}

/// Of words that begin with a record, those that are whole records.
pub fn whole(all: &[u64]) -> usize {
    /// Short records that are looked at together.
    const TOGETHER: usize = 32;
    let mut at = 0;
    while let Some([_, tag]) = all.get(at..at + SHORT_WORDS) {
        if let Some(several) = all.get(at..at + TOGETHER * SHORT_WORDS)
            && several.as_chunks::<2>().0.iter().fold(0, |or, [_, tag]| or | (tag & 3) ^ SHORT) == 0
        {
            at += several.len();
        } else if let Some(length) = words(*tag)
            && at + length <= all.len()
        {
            at += length;
        } else {
            break;
        }
    }
    at
}

/// A record as the collector reads it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Record<'words> {
    Short {
        ticks: u64,
        channel: ChannelId,
        payload: i64,
    },
    Wide {
        ticks: u64,
        channel: ChannelId,
        /// Whole words; the payload is their first `length` bytes.
        words: &'words [u64],
        length: usize,
        is_number: bool,
    },
    Thread {
        ticks: u64,
        tid: u32,
        name: [u64; 2],
    },
    Loss {
        ticks: u64,
        lost: u64,
        first: u64,
        last: u64,
    },
}

impl Record<'_> {
    pub fn is_event(self) -> bool {
        matches!(self, Self::Short { .. } | Self::Wide { .. })
    }
}

/// The words that follow are no record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Damaged;

/// Takes words apart, which must begin with a record.
#[derive(Clone, Debug)]
pub struct Records<'words> {
    rest: &'words [u64],
}

impl<'words> Records<'words> {
    pub fn new(words: &'words [u64]) -> Self {
        Self { rest: words }
    }

    /// The words that have not been taken apart yet.
    pub fn rest(&self) -> &'words [u64] {
        self.rest
    }
}

impl<'words> Iterator for Records<'words> {
    type Item = Result<Record<'words>, Damaged>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        let [ticks, tag, rest @ ..] = self.rest else {
            return (!core::mem::take(&mut self.rest).is_empty()).then_some(Err(Damaged));
        };
        let (ticks, tag) = (*ticks, *tag);
        let channel = (tag >> CHANNEL_SHIFT) as ChannelId;
        if tag & 3 == SHORT {
            self.rest = rest;
            let payload = tag as i64 >> PAYLOAD_SHIFT;
            return Some(Ok(Record::Short { ticks, channel, payload }));
        }
        let split = words(tag).and_then(|words| rest.split_at_checked(words - SHORT_WORDS));
        let Some((words, rest)) = split else {
            self.rest = &[];
            return Some(Err(Damaged));
        };
        self.rest = rest;
        Some(match (tag & 3, channel, words) {
            (WIDE, _, _) => {
                let length = (tag >> PAYLOAD_SHIFT) as usize;
                let is_number = length & NUMBER != 0;
                Ok(Record::Wide { ticks, channel, words, length: length & !NUMBER, is_number })
            }
            (CONTROL, control::THREAD, [tid, _, name @ ..]) => {
                Ok(Record::Thread { ticks, tid: *tid as u32, name: [name[0], name[1]] })
            }
            (CONTROL, control::LOSS, [lost, _, first, last]) => {
                Ok(Record::Loss { ticks, lost: *lost, first: *first, last: *last })
            }
            _ => Err(Damaged),
        })
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use proptest::prelude::*;
    use std::vec::Vec;

    fn read(words: &[u64]) -> Vec<Result<Record<'_>, Damaged>> {
        Records::new(words).collect()
    }

    #[test]
    fn what_fits_into_46_bits_is_short() {
        for payload in [0, -1, 42, (1 << 45) - 1, -(1 << 45)] {
            let words = [7, short_tag(u16::MAX, payload).unwrap()];
            let record = Record::Short { ticks: 7, channel: u16::MAX, payload };
            assert_eq!(read(&words), [Ok(record)]);
        }
        for payload in [1 << 45, -(1 << 45) - 1, i64::MAX, i64::MIN] {
            assert_eq!(short_tag(1, payload), None);
        }
    }

    #[test]
    fn each_kind_is_read_as_written() {
        let mut words: Vec<u64> = [1, wide_tag(9, 17), 10, 11, 12, 13].to_vec();
        words.extend(thread_record(2, 77, [5, 6]));
        words.extend(loss_record(3, 100, 8, 9));
        words.extend([4, short_tag(9, -3).unwrap()]);
        assert_eq!(
            read(&words),
            [
                Ok(Record::Wide {
                    ticks: 1,
                    channel: 9,
                    words: &[10, 11, 12, 13],
                    length: 17,
                    is_number: false
                }),
                Ok(Record::Thread { ticks: 2, tid: 77, name: [5, 6] }),
                Ok(Record::Loss { ticks: 3, lost: 100, first: 8, last: 9 }),
                Ok(Record::Short { ticks: 4, channel: 9, payload: -3 }),
            ]
        );
    }

    /// What writers in every language are held to (tests/log/test_memory_layout.py).
    #[test]
    fn the_vector_is_read_as_it_says() {
        let text = include_str!("../../../../tests/log/vector.txt");
        let mut words = Vec::new();
        let mut said = Vec::new();
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            let (record, what) = line.split_once('#').unwrap();
            let numbers = record.split_whitespace();
            words.extend(numbers.map(|word| u64::from_str_radix(word, 16).unwrap()));
            said.push(what.trim());
        }
        let told: Vec<_> = read(&words).into_iter().map(|record| tell(record.unwrap())).collect();
        assert_eq!(told, said);
    }

    fn tell(record: Record<'_>) -> std::string::String {
        match record {
            Record::Short { ticks, channel, payload } => {
                std::format!("{ticks}: channel {channel}, number {payload}")
            }
            Record::Wide { ticks, channel, words, is_number: true, .. } => {
                std::format!("{ticks}: channel {channel}, number {}", words[0] as i64)
            }
            Record::Wide { ticks, channel, words, length, .. } => {
                let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
                let text = std::str::from_utf8(&bytes[..length]).unwrap();
                std::format!("{ticks}: channel {channel}, bytes {text:?}")
            }
            Record::Thread { ticks, tid, name } => {
                let name = name.map(u64::to_le_bytes).concat();
                let name = std::str::from_utf8(&name).unwrap().trim_end_matches('\0');
                std::format!("{ticks}: thread {tid}, {name}")
            }
            Record::Loss { ticks, lost, first, last } => {
                std::format!("{ticks}: {lost} lost, from {first} to {last}")
            }
        }
    }

    #[test]
    fn a_record_that_is_cut_off_or_unknown_ends_the_reading() {
        let wide = [1, wide_tag(9, 17), 10, 11];
        assert_eq!(read(&wide), [Err(Damaged)]);
        assert_eq!(read(&[1]), [Err(Damaged)]);
        assert_eq!(read(&[1, 0, 1, 0]), [Err(Damaged)]);
        assert_eq!(read(&[1, wide_tag(9, LONGEST + 1), 1, 0]), [Err(Damaged)]);
        assert_eq!(read(&[1, control_tag(3, 4), 1, 2, 3, 4]), [Err(Damaged)]);
    }

    #[test]
    fn whole_records_are_counted_in_words() {
        let mut words: Vec<u64> = (0..100).flat_map(|n| [n, short_tag(1, 5).unwrap()]).collect();
        words.extend([1, wide_tag(9, 17), 10, 11, 12, 13]);
        words.extend((0..100).flat_map(|n| [n, short_tag(1, 5).unwrap()]));
        for end in 0..=words.len() {
            let read = read(&words[..end]);
            let short =
                read.iter().flatten().filter(|record| matches!(record, Record::Short { .. }));
            let wide = read.iter().flatten().count() - short.clone().count();
            assert_eq!(whole(&words[..end]), short.count() * 2 + wide * 6, "{end}");
        }
    }

    proptest! {
        #[test]
        fn any_words_are_read_to_an_end(words in proptest::collection::vec(any::<u64>(), 0..64)) {
            prop_assert!(read(&words).len() <= words.len());
        }
    }
}
