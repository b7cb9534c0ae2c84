// SPDX-License-Identifier: Apache-2.0
//! Files of log events that are whole are read as they were written; of others, whatever was
//! done to their bytes, behind the checksums or before them, every byte is in a block or damaged.
#![no_main]

use arbitrary::{Arbitrary, Unstructured};
use libfuzzer_sys::fuzz_target;
use tare_log_file::{
    Channels, Clock, Codec, Codecs, Encoder, End, Events, Header, Item, Kind, Packer, ProcessInfo,
    Reader, Relation, block,
};
use tare_log_segment::record::{
    LONGEST, loss_record, number_tag, short_tag, thread_record, wide_tag, wide_words,
};

#[derive(Arbitrary, Debug)]
enum Part<'a> {
    Events(Made<'a>),
    Clock([u8; 32]),
    Process {
        pid: u32,
        command: &'a str,
    },
    /// Content that nothing is known of, behind a checksum that is right.
    Any {
        kind: u8,
        codec: Option<u8>,
        raw: u32,
        content: &'a [u8],
    },
    Noise(&'a [u8]),
}

#[derive(Arbitrary, Debug)]
struct Made<'a> {
    records: Vec<Record<'a>>,
    usual: u8,
    /// Channel and codec.
    others: Vec<(u8, u8)>,
    told: u64,
    /// Of what is stored: where, and the bytes that stand there.
    damage: Vec<(u16, &'a [u8])>,
    /// What the damaged columns are compressed with again.
    again: Option<u8>,
    raw: Option<u32>,
}

#[derive(Arbitrary, Debug)]
enum Record<'a> {
    Short { ticks: u64, channel: u8, payload: i32 },
    Many { count: u8, step: u8, channel: u8 },
    Number { ticks: u64, channel: u8, payload: i64 },
    Bytes { ticks: u64, channel: u8, bytes: &'a [u8] },
    Thread { ticks: u64, tid: u32 },
    Loss { ticks: u64, lost: u64 },
}

#[derive(Arbitrary, Debug)]
struct Input<'a> {
    parts: Vec<Part<'a>>,
    /// Of the whole file.
    damage: Vec<(u16, &'a [u8])>,
    cut: Option<u16>,
}

fn codec(number: u8) -> Codec {
    Codec::ALL[usize::from(number) % Codec::ALL.len()].1
}

fn words(records: &[Record<'_>]) -> (Vec<u64>, u32) {
    let (mut words, mut events) = (Vec::new(), 0);
    for record in records {
        events += u32::from(!matches!(record, Record::Thread { .. } | Record::Loss { .. }));
        match record {
            Record::Short { ticks, channel, payload } => {
                let tag = short_tag((*channel).into(), (*payload).into());
                words.extend([*ticks, tag.expect("32 bits fit")]);
            }
            Record::Many { count, step, channel } => {
                events += u32::from(*count);
                for number in 0..=u64::from(*count) {
                    let tag = short_tag((*channel).into(), number as i64);
                    words.extend([number * u64::from(*step), tag.expect("8 bits fit")]);
                }
            }
            Record::Number { ticks, channel, payload } => {
                words.extend([*ticks, number_tag((*channel).into()), *payload as u64, 0]);
            }
            Record::Bytes { ticks, channel, bytes } => {
                let length = bytes.len().min(LONGEST);
                let end = words.len() + wide_words(length);
                words.extend([*ticks, wide_tag((*channel).into(), length)]);
                let whole = bytes[..length].chunks(8).map(|chunk| {
                    u64::from_le_bytes(std::array::from_fn(|byte| *chunk.get(byte).unwrap_or(&0)))
                });
                words.extend(whole);
                words.resize(end, 0);
            }
            Record::Thread { ticks, tid } => words.extend(thread_record(*ticks, *tid, [1, 2])),
            Record::Loss { ticks, lost } => words.extend(loss_record(*ticks, *lost, 1, *ticks)),
        }
    }
    (words, events)
}

fn harm(bytes: &mut [u8], damage: &[(u16, &[u8])]) {
    for (at, values) in damage {
        for (index, value) in values.iter().enumerate() {
            let place = usize::from(*at) + index;
            if let Some(byte) = bytes.get_mut(place) {
                *byte = *value;
            }
        }
    }
}

/// A block, and its events where it is whole.
fn events(made: &Made<'_>, encoder: &mut Encoder, packer: &mut Packer) -> (Vec<u8>, Option<u32>) {
    let (words, count) = words(&made.records);
    let others = made.others.iter().map(|(channel, number)| ((*channel).into(), codec(*number)));
    let codecs = Codecs::new(codec(made.usual), others);
    let packed = encoder.pack(&words, &codecs).expect("memory is there");
    assert_eq!((packed.summary.events, packed.summary.words), (count, words.len()));
    let mut header = Header {
        codec: packed.codec,
        raw: packed.raw as u32,
        events: count,
        told: made.told,
        ..Header::of(Kind::Events, 1)
    };
    let mut stored = packed.stored;
    harm(&mut stored, &made.damage);
    if let (Some(again), Some(Codec::None)) = (made.again, packed.codec) {
        let mut packed = Vec::new();
        header.codec = Some(codec(again));
        packer.pack(codec(again), &stored, &mut packed).expect("memory is there");
        stored = packed;
    }
    header.raw = made.raw.unwrap_or(header.raw);
    let is_whole = made.damage.is_empty() && made.raw.is_none();
    (block(header, &stored).expect("it is small"), is_whole.then_some(count))
}

fuzz_target!(|data: &[u8]| {
    // Not by the macro, which refuses what is shorter than a whole Input.
    let Ok(input) = Input::arbitrary_take_rest(Unstructured::new(data)) else { return };
    let (mut encoder, mut packer) = (Encoder::default(), Packer::default());
    let (mut file, mut written) = (Vec::new(), Vec::new());
    let mut is_whole = input.damage.is_empty() && input.cut.is_none();
    for part in &input.parts {
        let note = |kind, content: &[u8]| {
            let header = Header { raw: content.len() as u32, ..Header::of(kind, 1) };
            block(header, content).expect("it is small")
        };
        match part {
            Part::Events(made) => {
                let (block, events) = events(made, &mut encoder, &mut packer);
                file.extend(block);
                is_whole &= events.is_some();
                written.extend(events);
            }
            Part::Clock(bytes) => file.extend(note(Kind::Clock, bytes)),
            Part::Process { pid, command } => {
                let info = ProcessInfo { pid: *pid, command: (*command).into(), ..<_>::default() };
                file.extend(note(Kind::Process, &serde_json::to_vec(&info).expect("it is JSON")));
            }
            Part::Any { kind, codec: number, raw, content } => {
                const KINDS: [Kind; 5] =
                    [Kind::Events, Kind::Channels, Kind::End, Kind::Process, Kind::Relation];
                let kind = KINDS[usize::from(*kind) % KINDS.len()];
                let header = Header { codec: number.map(codec), raw: *raw, ..Header::of(kind, 2) };
                file.extend(block(header, content).expect("it is small"));
                is_whole = false;
            }
            Part::Noise(bytes) => {
                file.extend(*bytes);
                is_whole &= bytes.is_empty();
            }
        }
    }
    harm(&mut file, &input.damage);
    file.truncate(input.cut.map_or(file.len(), usize::from));

    let mut reader = Reader::new(&*file);
    let (mut read, mut bytes) = (Vec::new(), 0);
    for block in reader.by_ref() {
        let block = block.expect("memory can be read");
        bytes += block.bytes();
        match block.header.kind {
            Kind::Events => {
                let Ok(events) = Events::of(&block) else { continue };
                let Ok(items) = events.items() else { continue };
                read.push(items.iter().filter(|item| matches!(item, Item::Event(_))).count() as u32);
            }
            Kind::Clock => drop(Clock::read(&block.content)),
            Kind::Channels => drop(serde_json::from_slice::<Channels>(&block.content)),
            Kind::Process => drop(serde_json::from_slice::<ProcessInfo>(&block.content)),
            Kind::End => drop(serde_json::from_slice::<End>(&block.content)),
            Kind::Relation => drop(serde_json::from_slice::<Relation>(&block.content)),
        }
    }
    assert_eq!(bytes + reader.damaged, file.len() as u64);
    if is_whole {
        assert_eq!((read, reader.damaged), (written, 0));
    }
});
