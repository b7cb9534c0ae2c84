// SPDX-License-Identifier: Apache-2.0
use super::*;
use crate::columns::{Event, Item, Mark, Payload};
use crate::events::Events;
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

fn unpacked(packed: &Packed) -> Events {
    Events::unpack(packed.codec, packed.raw, &packed.stored, 0).unwrap()
}

fn any_codecs() -> impl Strategy<Value = Codecs> {
    let codec = || proptest::sample::select(Codec::ALL).prop_map(|(_, codec)| codec);
    let others = proptest::collection::vec(codec(), 0..6);
    (codec(), others).prop_map(|(usual, others)| Codecs { usual, others })
}

proptest! {
    #[test]
    fn what_is_written_is_read(
        records in proptest::collection::vec(any_record(), 0..300),
        codecs in any_codecs(),
    ) {
        let words: Vec<u64> = records.iter().flat_map(One::words).collect();
        let mut encoder = Encoder::default();
        // A second block must not know of the first.
        let first = encoder.pack(&words, &codecs).unwrap();
        let packed = encoder.pack(&words, &codecs).unwrap();
        prop_assert_eq!(&packed, &first);
        prop_assert_eq!(packed.summary.words, words.len());
        let events = unpacked(&packed);
        let read = events.items().unwrap();
        let written: Vec<_> = records.iter().map(One::item).collect();
        prop_assert_eq!(packed.summary.events as usize, read.iter().filter(
            |item| matches!(item, Item::Event(_))).count());
        prop_assert_eq!(read, written);
    }

    #[test]
    fn a_block_tells_of_its_least_and_its_greatest_ticks(
        ticks in proptest::collection::vec(0..1u64 << 62, 1..40),
        is_sorted in any::<bool>(),
        codecs in any_codecs(),
    ) {
        let mut ticks = ticks;
        if is_sorted {
            ticks.sort_unstable();
        }
        let records = ticks.iter().zip(0..).map(|(ticks, n)| One::Number(*ticks, n % 6, n.into()));
        let words: Vec<u64> = records.flat_map(|record| record.words()).collect();
        let summary = Encoder::default().pack(&words, &codecs).unwrap().summary;
        let both = (*ticks.iter().min().unwrap(), *ticks.iter().max().unwrap());
        prop_assert_eq!((summary.first_ticks, summary.last_ticks), both);
    }

    #[test]
    fn any_content_is_refused_or_read(
        content in proptest::collection::vec(any::<u8>(), 0..200),
        codec in proptest::option::of(Just(Codec::None)),
    ) {
        if let Ok(events) = Events::unpack(codec, content.len(), &content, 0) {
            let _ = events.items();
        }
    }
}

fn pack(words: &[u64]) -> Packed {
    let codecs = Codecs { usual: Codec::None, ..Codecs::default() };
    Encoder::default().pack(words, &codecs).unwrap()
}

#[test]
fn losses_are_told_as_differences() {
    let mut words = loss_record(1, 10, 3, 4).to_vec();
    words.extend(loss_record(2, 15, 5, 6));
    let packed = pack(&words);
    assert_eq!(packed.summary.lost, Some(15));
    let events = Events::unpack(packed.codec, packed.raw, &packed.stored, 7).unwrap();
    let loss = |ticks, lost, first, last| Item::Mark(Mark::Loss { ticks, lost, first, last });
    assert_eq!(events.items().unwrap(), [loss(1, 3, 3, 4), loss(2, 5, 5, 6)]);
}

#[test]
fn each_channel_gets_its_codec() {
    let words: Vec<u64> =
        (0..900u16).flat_map(|n| [n.into(), short_tag(n % 3, n.into()).unwrap()]).collect();
    let codecs = |others: &[_]| Codecs { usual: Codec::Zstd, others: others.to_vec() };
    let mut encoder = Encoder::default();
    let all = [Codec::Lz4; 3];
    assert_eq!(encoder.pack(&words, &codecs(&all)).unwrap().codec, Some(Codec::Lz4));
    let packed = encoder.pack(&words, &codecs(&[Codec::None, Codec::Lzo1x])).unwrap();
    assert_eq!(packed.codec, None);
    let used = unpacked(&packed).codecs();
    assert_eq!(used, [Codec::Zstd, Codec::None, Codec::Zstd, Codec::Lzo1x]);
}

#[test]
fn a_batch_that_ends_within_a_record_leaves_it_for_the_next() {
    let words = [1, short_tag(1, 1).unwrap(), 2, wide_tag(1, 100), 0, 0];
    let summary = pack(&words).summary;
    assert_eq!((summary.words, summary.events), (2, 1));
}

#[test]
fn what_repeats_takes_little() {
    let words: Vec<u64> =
        (0..1000u64).flat_map(|n| [n * 30, short_tag(3, n as i64).unwrap()]).collect();
    let length = pack(&words).stored.len();
    assert!(length < 2_200, "{length}");
}
