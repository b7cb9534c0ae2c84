// SPDX-License-Identifier: Apache-2.0
//! Turns the words of a ring into columns: times as differences to the event before, payloads
//! to the one before on the same channel, each column split into its bytes, so that all that
//! repeats stands together.

use crate::codec::Packer;
use crate::columns::{Layout, MARK, NUMBER, unzigzag};
use crate::parts;
use std::io;
use tare_log_segment::record::{SHORT_WORDS, is_virtual, short};
use tare_log_segment::{ChannelId, Codec, Record, Records};

/// Which codec the events of a channel get.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Codecs {
    pub usual: Codec,
    /// By channel, where not all have the same; those behind the end have the usual one.
    pub others: Vec<Codec>,
}

impl Codecs {
    /// The usual one, and what channels have asked for.
    pub fn new(usual: Codec, asked: impl Iterator<Item = (ChannelId, Codec)>) -> Self {
        let mut others = Vec::new();
        for (id, codec) in asked.filter(|(_, codec)| *codec != usual) {
            let place = usize::from(id);
            others.resize(others.len().max(place + 1), usual);
            others[place] = codec;
        }
        Self { usual, others }
    }

    fn of(&self, channel: ChannelId) -> Codec {
        self.others.get(usize::from(channel)).copied().unwrap_or(self.usual)
    }
}

/// Buffers for one block at a time, used again for the next.
#[derive(Default)]
pub struct Encoder {
    /// One for each codec.
    groups: [Group; Codec::ALL.len()],
    /// By event: the number of its group; where there is more than one.
    order: Vec<u8>,
    marks: Vec<u8>,
    columns: Vec<u8>,
    packer: Packer,
}

/// The events of one codec.
#[derive(Default)]
struct Group {
    /// By channel: 1 + its place in the dictionary of this block.
    places: Vec<u16>,
    dictionary: Vec<ChannelId>,
    last: Vec<i64>,
    /// Longer than there are rows.
    ids: Vec<u16>,
    ticks: Vec<u64>,
    values: Vec<u64>,
    rows: usize,
    before: u64,
    first_ticks: u64,
    all_ticks: u64,
    all_values: u64,
    wide: Vec<[u32; 2]>,
    bytes: Vec<u8>,
}

/// What a block's header says of its events.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    pub events: u32,
    /// The least, and the greatest: medians stand behind events that were later.
    pub first_ticks: u64,
    pub last_ticks: u64,
    /// Words that were whole records.
    pub words: usize,
    /// The thread at the end, if a record named one.
    pub thread: Option<(u32, [u8; 16])>,
    /// A record named a virtual thread.
    pub is_carried: bool,
    /// Events lost since the ring was made, if a record said so.
    pub lost: Option<u64>,
}

/// The content of a block of events.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Packed {
    pub summary: Summary,
    /// `None` where it is in parts, each with its own.
    pub codec: Option<Codec>,
    pub raw: usize,
    pub stored: Vec<u8>,
}

impl Encoder {
    /// The words, compressed, of which those behind the last whole record are left out.
    pub fn pack(&mut self, words: &[u64], codecs: &Codecs) -> io::Result<Packed> {
        let summary = self.encode(words, codecs);
        let used: Vec<_> = Codec::ALL
            .iter()
            .zip(&self.groups)
            .filter_map(|((_, codec), group)| (group.rows > 0).then_some(*codec))
            .collect();
        match used[..] {
            [] => self.pack_one(summary, codecs.usual),
            [codec] => self.pack_one(summary, codec),
            _ => self.pack_parts(summary, codecs, &used),
        }
    }

    fn pack_one(&mut self, summary: Summary, codec: Codec) -> io::Result<Packed> {
        self.columns.clear();
        self.groups[codec as usize - 1].write(&self.marks, &mut self.columns);
        let mut stored = Vec::new();
        self.packer.pack(codec, &self.columns, &mut stored)?;
        Ok(Packed { summary, codec: Some(codec), raw: self.columns.len(), stored })
    }

    fn pack_parts(
        &mut self,
        summary: Summary,
        codecs: &Codecs,
        used: &[Codec],
    ) -> io::Result<Packed> {
        self.columns.clear();
        let place = |group: &u8| used.iter().position(|codec| *codec as u8 - 1 == *group);
        let places: Vec<_> =
            (0..Codec::ALL.len() as u8).map(|group| place(&group).unwrap_or(0) as u8).collect();
        self.order.iter_mut().for_each(|group| *group = places[usize::from(*group)]);
        let mut parts = parts::Writer::new(used.len() + 1);
        parts::write_order(&self.order, &self.marks, &mut self.columns);
        parts.add(codecs.usual, &self.columns, &mut self.packer)?;
        for codec in used {
            self.columns.clear();
            self.groups[*codec as usize - 1].write(&[], &mut self.columns);
            parts.add(*codec, &self.columns, &mut self.packer)?;
        }
        let (raw, stored) = parts.finish();
        Ok(Packed { summary, codec: None, raw, stored })
    }

    fn encode(&mut self, words: &[u64], codecs: &Codecs) -> Summary {
        self.clear(words.len() / SHORT_WORDS);
        let mut summary = Summary::default();
        let mut rest = words;
        while !rest.is_empty() {
            rest = if codecs.others.is_empty() {
                self.groups[codecs.usual as usize - 1].shorts(rest)
            } else {
                self.shorts_apart(rest, codecs)
            };
            let mut records = Records::new(rest);
            let Some(Ok(record)) = records.next() else { break };
            rest = records.rest();
            match record {
                Record::Short { ticks, channel, payload } => {
                    self.enter(ticks, channel, payload, codecs);
                }
                Record::Wide { ticks, channel, words, length, is_number } => {
                    let group = self.enter(ticks, channel, 0, codecs);
                    let row = group.rows as u32 - 1;
                    group.wide.push([row, length as u32 | if is_number { NUMBER } else { 0 }]);
                    let bytes = words.iter().flat_map(|word| word.to_le_bytes());
                    group.bytes.extend(bytes.take(length));
                }
                Record::Thread { ticks, tid, name } => {
                    self.mark(MARK.thread, [ticks, tid.into(), name[0], name[1], 0]);
                    let mut text = [0; 16];
                    text[..8].copy_from_slice(&name[0].to_le_bytes());
                    text[8..].copy_from_slice(&name[1].to_le_bytes());
                    summary.thread = Some((tid, text));
                    summary.is_carried |= is_virtual(tid);
                }
                Record::Loss { ticks, lost, first, last } => {
                    self.mark(MARK.loss, [ticks, lost, first, last, 0]);
                    summary.lost = summary.lost.max(Some(lost));
                }
            }
        }
        let groups = || self.groups.iter().filter(|group| group.rows > 0);
        summary.words = words.len() - rest.len();
        summary.events = self.rows() as u32;
        summary.first_ticks = groups().map(|group| group.bounds().0).min().unwrap_or(0);
        summary.last_ticks = groups().map(|group| group.bounds().1).max().unwrap_or(0);
        summary
    }

    fn clear(&mut self, most_rows: usize) {
        self.order.clear();
        self.marks.clear();
        self.groups.iter_mut().for_each(|group| group.clear(most_rows));
    }

    fn rows(&self) -> usize {
        self.groups.iter().map(|group| group.rows).sum()
    }

    /// One event into the group of its channel.
    #[inline]
    fn enter(
        &mut self,
        ticks: u64,
        channel: ChannelId,
        payload: i64,
        codecs: &Codecs,
    ) -> &mut Group {
        let number = codecs.of(channel) as usize - 1;
        if !codecs.others.is_empty() {
            self.order.push(number as u8);
        }
        let group = &mut self.groups[number];
        group.push(ticks, channel, payload);
        group
    }

    /// Takes short records as long as they follow one another.
    fn shorts_apart<'words>(&mut self, words: &'words [u64], codecs: &Codecs) -> &'words [u64] {
        let mut taken = 0;
        for [ticks, tag] in words.as_chunks().0 {
            let Some((channel, payload)) = short(*tag) else { break };
            self.enter(*ticks, channel, payload, codecs);
            taken += SHORT_WORDS;
        }
        &words[taken..]
    }

    fn mark(&mut self, kind: u32, numbers: [u64; 5]) {
        self.marks.extend((self.rows() as u32).to_le_bytes());
        self.marks.extend(kind.to_le_bytes());
        self.marks.extend(numbers.iter().flat_map(|number| number.to_le_bytes()));
    }
}

impl Group {
    fn clear(&mut self, most_rows: usize) {
        for channel in self.dictionary.drain(..) {
            self.places[usize::from(channel)] = 0;
        }
        self.last.clear();
        self.wide.clear();
        self.bytes.clear();
        (self.rows, self.before, self.first_ticks) = (0, 0, 0);
        (self.all_ticks, self.all_values) = (0, 0);
        if self.ids.len() < most_rows {
            self.ids.resize(most_rows, 0);
            self.ticks.resize(most_rows, 0);
            self.values.resize(most_rows, 0);
        }
    }

    #[inline]
    fn place(&mut self, channel: ChannelId) -> u16 {
        match self.places.get(usize::from(channel)) {
            Some(place) if *place > 0 => place - 1,
            _ => self.new_place(channel),
        }
    }

    #[cold]
    fn new_place(&mut self, channel: ChannelId) -> u16 {
        if self.places.is_empty() {
            self.places.resize(1 << ChannelId::BITS, 0);
        }
        let place = self.dictionary.len() as u16;
        self.dictionary.push(channel);
        self.last.push(0);
        self.places[usize::from(channel)] = place + 1;
        place
    }

    fn begin(&mut self, ticks: u64) {
        if self.rows == 0 {
            (self.first_ticks, self.before) = (ticks, ticks);
        }
    }

    fn push(&mut self, ticks: u64, channel: ChannelId, payload: i64) {
        self.begin(ticks);
        let place = self.place(channel);
        let last = std::mem::replace(&mut self.last[usize::from(place)], payload);
        let value = zigzag(payload.wrapping_sub(last));
        let later = zigzag(ticks.wrapping_sub(self.before) as i64);
        self.before = ticks;
        self.all_ticks |= later;
        self.all_values |= value;
        self.ids[self.rows] = place;
        self.ticks[self.rows] = later;
        self.values[self.rows] = value;
        self.rows += 1;
    }

    /// As `push`, of the short records that the words begin with; says what follows.
    fn shorts<'words>(&mut self, words: &'words [u64]) -> &'words [u64] {
        let records = words.as_chunks::<SHORT_WORDS>().0;
        let Some([ticks, _]) = records.first().filter(|[_, tag]| short(*tag).is_some()) else {
            return words;
        };
        self.begin(*ticks);
        // All in one loop that knows its bounds, and keeps what it adds up in registers.
        let mut taken = 0;
        let (mut before, mut all_ticks, mut all_values) = (self.before, 0, 0);
        while let Some([_, tag]) = records.get(taken)
            && let Some((channel, _)) = short(*tag)
        {
            self.place(channel);
            let begin = self.rows + taken;
            let rows = self.ids[begin..]
                .iter_mut()
                .zip(&mut self.ticks[begin..])
                .zip(&mut self.values[begin..]);
            for (((id, later), value), [ticks, tag]) in rows.zip(&records[taken..]) {
                let Some((channel, payload)) = short(*tag) else { break };
                let place = self.places[usize::from(channel)];
                if place == 0 {
                    break;
                }
                let Some(last) = self.last.get_mut(usize::from(place - 1)) else { break };
                *id = place - 1;
                *value = zigzag(payload.wrapping_sub(std::mem::replace(last, payload)));
                *later = zigzag(ticks.wrapping_sub(before) as i64);
                before = *ticks;
                all_ticks |= *later;
                all_values |= *value;
                taken += 1;
            }
        }
        self.before = before;
        self.all_ticks |= all_ticks;
        self.all_values |= all_values;
        self.rows += taken;
        &words[taken * SHORT_WORDS..]
    }

    /// The least and the greatest ticks. Where no difference is negative, and so none is odd, they
    /// are the first and the last.
    fn bounds(&self) -> (u64, u64) {
        if self.all_ticks & 1 == 0 {
            return (self.first_ticks, self.before);
        }
        let mut ticks = self.first_ticks;
        self.ticks[..self.rows].iter().fold((ticks, ticks), |(least, greatest), later| {
            ticks = ticks.wrapping_add_signed(unzigzag(*later));
            (least.min(ticks), greatest.max(ticks))
        })
    }

    fn write(&self, marks: &[u8], out: &mut Vec<u8>) {
        let layout = Layout {
            rows: self.rows,
            marks: marks.len() / MARK.bytes,
            wide: self.wide.len(),
            bytes: self.bytes.len(),
            dictionary: self.dictionary.len(),
            id_planes: planes(self.dictionary.len().saturating_sub(1) as u64),
            tick_planes: planes(self.all_ticks),
            value_planes: planes(self.all_values),
            first_ticks: self.first_ticks,
        };
        layout.write(out);
        out.extend(self.dictionary.iter().flat_map(|channel| channel.to_le_bytes()));
        out.extend(marks);
        out.extend(self.wide.iter().flatten().flat_map(|number| number.to_le_bytes()));
        for plane in 0..layout.id_planes {
            out.extend(self.ids[..self.rows].iter().map(|id| (id >> (8 * plane)) as u8));
        }
        for (numbers, planes) in
            [(&self.ticks, layout.tick_planes), (&self.values, layout.value_planes)]
        {
            for plane in 0..planes {
                out.extend(numbers[..self.rows].iter().map(|number| (number >> (8 * plane)) as u8));
            }
        }
        out.extend(&self.bytes);
    }
}

/// Small numbers of either sign become small ones.
#[inline]
pub fn zigzag(number: i64) -> u64 {
    (number << 1 ^ number >> 63) as u64
}

/// Bytes that are needed for all of the bits.
fn planes(bits: u64) -> usize {
    (u64::BITS - bits.leading_zeros()).div_ceil(8) as usize
}

#[cfg(test)]
mod tests;
