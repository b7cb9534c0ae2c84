// SPDX-License-Identifier: Apache-2.0
//! Blocks whose channels have different codecs: a part for each codec, behind one that has the
//! order of all events. The ring's words are in one block whole, or not at all.

use crate::codec::{Invalid, Packer, unpack};
use crate::columns::{Columns, Item, MARK, MOST_ROWS, mark_of, u32_at};
use std::io;
use tare_log_segment::Codec;

/// Bytes that the table of parts has for each.
const ENTRY: usize = 12;

/// Puts parts together.
pub struct Writer {
    out: Vec<u8>,
    added: usize,
    raw: usize,
}

impl Writer {
    pub fn new(parts: usize) -> Self {
        let mut out = vec![0; 4 + parts * ENTRY];
        out[..4].copy_from_slice(&(parts as u32).to_le_bytes());
        Self { out, added: 0, raw: 0 }
    }

    pub fn add(&mut self, codec: Codec, content: &[u8], packer: &mut Packer) -> io::Result<()> {
        let stored = packer.pack(codec, content, &mut self.out)? as u32;
        let entry = 4 + self.added * ENTRY;
        for (place, number) in [codec as u32, stored, content.len() as u32].iter().enumerate() {
            let at = entry + 4 * place;
            self.out[at..at + 4].copy_from_slice(&number.to_le_bytes());
        }
        self.added += 1;
        self.raw += content.len();
        Ok(())
    }

    /// Bytes of all parts unpacked, and what is stored.
    pub fn finish(self) -> (usize, Vec<u8>) {
        (self.raw, self.out)
    }
}

/// The parts of a block, unpacked.
pub fn read(stored: &[u8], raw: usize) -> Result<Vec<(Codec, Vec<u8>)>, Invalid> {
    let count = u32_at(stored.get(..4).ok_or(Invalid)?, 0) as usize;
    // The order, and one part a codec.
    if !(2..=1 + Codec::ALL.len()).contains(&count) {
        return Err(Invalid);
    }
    let (table, mut rest) = stored[4..].split_at_checked(count * ENTRY).ok_or(Invalid)?;
    let mut left = raw;
    let mut parts = Vec::with_capacity(count);
    for entry in table.chunks_exact(ENTRY) {
        let codec = u16::try_from(u32_at(entry, 0)).ok().and_then(Codec::numbered);
        let (length, unpacked) = (u32_at(entry, 4) as usize, u32_at(entry, 8) as usize);
        let (part, after) = rest.split_at_checked(length).ok_or(Invalid)?;
        // Before memory is asked for.
        left = left.checked_sub(unpacked).ok_or(Invalid)?;
        let codec = codec.ok_or(Invalid)?;
        parts.push((codec, unpack(codec, part, unpacked)?));
        rest = after;
    }
    if rest.is_empty() && left == 0 { Ok(parts) } else { Err(Invalid) }
}

/// Appends the part that has the order: by event, the part that it is in, counted from 0
/// behind this one; and the marks.
pub fn write_order(order: &[u8], marks: &[u8], out: &mut Vec<u8>) {
    out.extend((order.len() as u32).to_le_bytes());
    out.extend(((marks.len() / MARK.bytes) as u32).to_le_bytes());
    out.extend(marks);
    out.extend(order);
}

/// Events and marks of all parts in the order in which they were written.
pub fn items<'content>(
    order: &'content [u8],
    parts: &'content [(Codec, Vec<u8>)],
) -> Result<Vec<Item<'content>>, Invalid> {
    let head = order.get(..8).ok_or(Invalid)?;
    let (rows, marks) = (u32_at(head, 0) as usize, u32_at(head, 4) as usize);
    let length = marks.checked_mul(MARK.bytes).ok_or(Invalid)?;
    let (marks, order) = order[8..].split_at_checked(length).ok_or(Invalid)?;
    if order.len() != rows || rows > MOST_ROWS {
        return Err(Invalid);
    }
    let items = |(_, content): &'content (Codec, Vec<u8>)| Columns::read(content)?.items();
    let parts: Result<Vec<_>, _> = parts.iter().map(items).collect();
    let mut parts: Vec<_> = parts?.into_iter().map(Vec::into_iter).collect();
    let mut marks = marks.chunks_exact(MARK.bytes).peekable();
    let mut all = Vec::with_capacity(rows + marks.len());
    for (row, part) in order.iter().enumerate() {
        while let Some(mark) = marks.next_if(|mark| u32_at(mark, 0) as usize <= row) {
            all.push(Item::Mark(mark_of(mark)?));
        }
        let part = parts.get_mut(usize::from(*part)).ok_or(Invalid)?;
        all.push(part.next().filter(|item| matches!(item, Item::Event(_))).ok_or(Invalid)?);
    }
    for mark in marks {
        all.push(Item::Mark(mark_of(mark)?));
    }
    if parts.iter_mut().all(|part| part.next().is_none()) { Ok(all) } else { Err(Invalid) }
}
