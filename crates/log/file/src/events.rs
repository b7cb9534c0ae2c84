// SPDX-License-Identifier: Apache-2.0
use crate::block::Block;
use crate::codec;
use crate::codec::Invalid;
use crate::columns::{Columns, Item, Mark};
use crate::parts;
use tare_log_segment::Codec;

/// The content of a block of events, unpacked.
#[derive(Debug)]
pub struct Events {
    /// One, or the order and what is ordered.
    parts: Vec<(Codec, Vec<u8>)>,
    /// Events lost that blocks before this one tell of.
    told: u64,
}

impl Events {
    pub fn of(block: &Block) -> Result<Self, Invalid> {
        let header = &block.header;
        Self::unpack(header.codec, header.raw as usize, &block.content, header.told)
    }

    pub fn unpack(
        codec: Option<Codec>,
        raw: usize,
        stored: &[u8],
        told: u64,
    ) -> Result<Self, Invalid> {
        let parts = match codec {
            Some(codec) => vec![(codec, codec::unpack(codec, stored, raw)?)],
            None => parts::read(stored, raw)?,
        };
        Ok(Self { parts, told })
    }

    /// How each part is compressed.
    pub fn codecs(&self) -> Vec<Codec> {
        self.parts.iter().map(|(codec, _)| *codec).collect()
    }

    /// Events and marks in the order in which they were written.
    pub fn items(&self) -> Result<Vec<Item<'_>>, Invalid> {
        let mut items = match &self.parts[..] {
            [] => return Err(Invalid),
            [(_, only)] => Columns::read(only)?.items()?,
            [(_, order), parts @ ..] => parts::items(order, parts)?,
        };
        // In the file stand sums: who packs a block need not know of those before.
        let mut told = self.told;
        for item in &mut items {
            if let Item::Mark(Mark::Loss { lost, .. }) = item {
                let sum = *lost;
                *lost = sum.saturating_sub(told);
                told = told.max(sum);
            }
        }
        Ok(items)
    }
}
