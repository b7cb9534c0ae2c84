// SPDX-License-Identifier: Apache-2.0
//! Reads the columns of a block of events.

use crate::codec::Invalid;
use std::ops::Range;
use tare_log_segment::ChannelId;

/// Marks the length of a payload that is a number.
pub const NUMBER: u32 = 1 << 31;

pub struct MarkKinds {
    pub thread: u32,
    pub loss: u32,
    pub bytes: usize,
}

pub const MARK: MarkKinds = MarkKinds { thread: 1, loss: 2, bytes: 48 };

/// How many of everything: the first 40 bytes of the content.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Layout {
    pub rows: usize,
    pub marks: usize,
    pub wide: usize,
    pub bytes: usize,
    pub dictionary: usize,
    pub id_planes: usize,
    pub tick_planes: usize,
    pub value_planes: usize,
    pub first_ticks: u64,
}

const LAYOUT: usize = 40;

/// Columns of nothing but zeros take no bytes: without a limit, a few bytes could ask for any
/// amount of memory.
pub const MOST_ROWS: usize = 1 << 20;

impl Layout {
    pub fn write(&self, out: &mut Vec<u8>) {
        for number in [self.rows, self.marks, self.wide, self.bytes, self.dictionary] {
            out.extend((number as u32).to_le_bytes());
        }
        out.extend([self.id_planes as u8, self.tick_planes as u8, self.value_planes as u8, 0]);
        out.extend([0; 8]);
        out.extend(self.first_ticks.to_le_bytes());
    }

    fn read(content: &[u8]) -> Result<Self, Invalid> {
        let content = content.get(..LAYOUT).ok_or(Invalid)?;
        let number = |at| u32_at(content, at) as usize;
        let layout = Self {
            rows: number(0),
            marks: number(4),
            wide: number(8),
            bytes: number(12),
            dictionary: number(16),
            id_planes: content[20].into(),
            tick_planes: content[21].into(),
            value_planes: content[22].into(),
            first_ticks: u64_at(content, 32),
        };
        let planes = layout.tick_planes <= 8 && layout.value_planes <= 8 && layout.id_planes <= 2;
        if planes && layout.rows <= MOST_ROWS { Ok(layout) } else { Err(Invalid) }
    }
}

pub fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(std::array::from_fn(|byte| bytes[at + byte]))
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(std::array::from_fn(|byte| bytes[at + byte]))
}

/// What an event says besides its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Payload<'content> {
    Number(i64),
    Bytes(&'content [u8]),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event<'content> {
    pub ticks: u64,
    pub channel: ChannelId,
    pub payload: Payload<'content>,
}

/// What stands between events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    /// The events that follow are those of this thread.
    Thread { ticks: u64, tid: u32, name: [u8; 16] },
    /// So many events were lost, between these times.
    Loss { ticks: u64, lost: u64, first: u64, last: u64 },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Item<'content> {
    Event(Event<'content>),
    Mark(Mark),
}

/// The columns of one block.
#[derive(Debug)]
pub struct Columns<'content> {
    layout: Layout,
    dictionary: &'content [u8],
    marks: &'content [u8],
    wide: &'content [u8],
    ids: &'content [u8],
    ticks: &'content [u8],
    values: &'content [u8],
    bytes: &'content [u8],
}

impl<'content> Columns<'content> {
    /// Checks that `content` is exactly as long as it says.
    pub fn read(content: &'content [u8]) -> Result<Self, Invalid> {
        let layout = Layout::read(content)?;
        let mut rest = &content[LAYOUT..];
        let mut part = |count: usize, size: usize| {
            let length = count.checked_mul(size).ok_or(Invalid)?;
            let (part, after) = rest.split_at_checked(length).ok_or(Invalid)?;
            rest = after;
            Ok(part)
        };
        let columns = Self {
            layout,
            dictionary: part(layout.dictionary, 2)?,
            marks: part(layout.marks, MARK.bytes)?,
            wide: part(layout.wide, 8)?,
            ids: part(layout.rows, layout.id_planes)?,
            ticks: part(layout.rows, layout.tick_planes)?,
            values: part(layout.rows, layout.value_planes)?,
            bytes: part(layout.bytes, 1)?,
        };
        if rest.is_empty() { Ok(columns) } else { Err(Invalid) }
    }

    /// Events and marks in the order in which they were written.
    pub fn items(&self) -> Result<Vec<Item<'content>>, Invalid> {
        let mut items = Vec::with_capacity(self.layout.rows + self.layout.marks);
        let mut last = vec![0i64; self.layout.dictionary];
        let mut ticks = self.layout.first_ticks;
        let mut marks = self.marks.chunks_exact(MARK.bytes).peekable();
        let mut wide = self.wide.chunks_exact(8).peekable();
        let mut taken = 0;
        for row in 0..self.layout.rows {
            while let Some(mark) = marks.next_if(|mark| u32_at(mark, 0) as usize <= row) {
                items.push(Item::Mark(mark_of(mark)?));
            }
            ticks = ticks.wrapping_add(unzigzag(self.cell(self.ticks, row)) as u64);
            let place = self.cell(self.ids, row) as usize;
            let last = last.get_mut(place).ok_or(Invalid)?;
            *last = last.wrapping_add(unzigzag(self.cell(self.values, row)));
            let payload = match wide.next_if(|entry| u32_at(entry, 0) as usize == row) {
                Some(entry) => {
                    let length = u32_at(entry, 4);
                    let range = self.range(&mut taken, (length & !NUMBER) as usize)?;
                    payload_of(&self.bytes[range], length & NUMBER != 0)?
                }
                None => Payload::Number(*last),
            };
            let channel = self.dictionary.get(2 * place..2 * place + 2).ok_or(Invalid)?;
            let channel = ChannelId::from_le_bytes([channel[0], channel[1]]);
            items.push(Item::Event(Event { ticks, channel, payload }));
        }
        for mark in marks {
            items.push(Item::Mark(mark_of(mark)?));
        }
        Ok(items)
    }

    /// The number in a row of a column, whose bytes stand a whole column apart.
    fn cell(&self, column: &[u8], row: usize) -> u64 {
        let planes = column.chunks_exact(self.layout.rows);
        planes.rev().fold(0, |number, plane| number << 8 | u64::from(plane[row]))
    }

    fn range(&self, taken: &mut usize, length: usize) -> Result<Range<usize>, Invalid> {
        let start = *taken;
        *taken = start.checked_add(length).filter(|end| *end <= self.bytes.len()).ok_or(Invalid)?;
        Ok(start..*taken)
    }
}

fn payload_of(bytes: &[u8], is_number: bool) -> Result<Payload<'_>, Invalid> {
    if !is_number {
        return Ok(Payload::Bytes(bytes));
    }
    bytes.try_into().map(|bytes| Payload::Number(i64::from_le_bytes(bytes))).map_err(|_| Invalid)
}

pub fn mark_of(bytes: &[u8]) -> Result<Mark, Invalid> {
    let number = |index: usize| u64_at(bytes, 8 + 8 * index);
    match u32_at(bytes, 4) {
        1 => {
            let name = std::array::from_fn(|byte| bytes[24 + byte]);
            Ok(Mark::Thread { ticks: number(0), tid: number(1) as u32, name })
        }
        2 => {
            let (ticks, lost) = (number(0), number(1));
            Ok(Mark::Loss { ticks, lost, first: number(2), last: number(3) })
        }
        _ => Err(Invalid),
    }
}

pub fn unzigzag(number: u64) -> i64 {
    (number >> 1) as i64 ^ -((number & 1) as i64)
}
