// SPDX-License-Identifier: Apache-2.0
use crate::block::Block;
use std::io::{self, Read};
use tare_log_segment::block::{HEADER, Header, MAGIC, SUMMED};

/// Reads the blocks of a file, past whatever is damaged.
pub struct Reader<Source> {
    source: Source,
    /// Read, and not yet taken.
    window: Vec<u8>,
    at: usize,
    is_over: bool,
    /// Bytes that belong to no block.
    pub damaged: u64,
    /// Bytes that were summed for blocks whose checksum is wrong.
    summed_in_vain: u64,
    most_in_vain: u64,
}

const STEP: usize = 1 << 20;

/// A file can be made so that a block seems to begin everywhere within another. When the checksums
/// of this many bytes were wrong, a block with a wrong checksum is skipped whole.
const MOST_IN_VAIN: u64 = 1 << 32;

impl<Source: Read> Reader<Source> {
    pub fn new(source: Source) -> Self {
        Self {
            source,
            window: Vec::new(),
            at: 0,
            is_over: false,
            damaged: 0,
            summed_in_vain: 0,
            most_in_vain: MOST_IN_VAIN,
        }
    }

    /// The next block whose checksum is right.
    fn whole(&mut self) -> io::Result<Option<Block>> {
        loop {
            if !self.fill(HEADER)? {
                self.damaged += (self.window.len() - self.at) as u64;
                self.at = self.window.len();
                return Ok(None);
            }
            match self.block()? {
                Ok(block) => return Ok(Some(block)),
                Err(damaged) => self.skip(damaged),
            }
        }
    }

    /// The block that begins here, or the number of bytes in which none begins.
    fn block(&mut self) -> io::Result<Result<Block, usize>> {
        let Some((header, sum)) = self.rest()[..HEADER].try_into().ok().and_then(Header::read)
        else {
            return Ok(Err(1));
        };
        let length = HEADER + header.stored as usize;
        if !self.fill(length)? {
            return Ok(Err(1));
        }
        let block = &self.rest()[..length];
        if crc32c::crc32c(&block[SUMMED..]) != sum {
            self.summed_in_vain += length as u64;
            return Ok(Err(if self.summed_in_vain > self.most_in_vain { length } else { 1 }));
        }
        let content = block[HEADER..].to_vec();
        self.at += length;
        Ok(Ok(Block { header, content }))
    }

    /// Goes on to the next place where a block may begin, at least `damaged` bytes further.
    fn skip(&mut self, damaged: usize) {
        let rest = &self.rest()[damaged..];
        let next = rest.windows(MAGIC.len()).position(|bytes| bytes == MAGIC);
        // The magic may be cut off by the end of what has been read.
        let step = damaged + next.unwrap_or(rest.len().saturating_sub(MAGIC.len() - 1));
        self.at += step;
        self.damaged += step as u64;
    }

    fn rest(&self) -> &[u8] {
        &self.window[self.at..]
    }

    /// Whether so many bytes follow.
    fn fill(&mut self, length: usize) -> io::Result<bool> {
        while self.rest().len() < length && !self.is_over {
            self.window.drain(..self.at);
            self.at = 0;
            let wanted = STEP.max(length - self.window.len()) as u64;
            let read = self.source.by_ref().take(wanted).read_to_end(&mut self.window)?;
            self.is_over = read == 0;
        }
        Ok(self.rest().len() >= length)
    }
}

impl<Source: Read> Iterator for Reader<Source> {
    type Item = io::Result<Block>;

    fn next(&mut self) -> Option<Self::Item> {
        self.whole().transpose()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::block::block;
    use tare_log_segment::block::Kind;

    fn blocks(bytes: &[u8]) -> (Vec<Vec<u8>>, u64) {
        let mut reader = Reader::new(bytes);
        let found = reader.by_ref().map(|block| block.unwrap().content).collect();
        (found, reader.damaged)
    }

    #[test]
    fn damage_costs_the_blocks_it_is_in() {
        let encoded = |content: &[u8]| block(Header::of(Kind::Process, 0), content).unwrap();
        let whole = [encoded(b"a"), encoded(b"bb"), encoded(b"ccc")].concat();
        let all = [b"a".to_vec(), b"bb".to_vec(), b"ccc".to_vec()];
        assert_eq!(blocks(&whole), (all.to_vec(), 0));

        let mut bad = whole.clone();
        bad[HEADER + 1 + HEADER] ^= 1;
        let left = [all[0].clone(), all[2].clone()];
        assert_eq!(blocks(&bad), (left.to_vec(), HEADER as u64 + 2));

        let cut = &whole[..whole.len() - 1];
        assert_eq!(blocks(cut), (all[..2].to_vec(), HEADER as u64 + 2));

        let noise = [b"TLBTLBK", &whole[..], b"TLB"].concat();
        assert_eq!(blocks(&noise), (all.to_vec(), 10));
    }

    #[test]
    fn blocks_within_a_damaged_block_are_looked_for_only_for_a_time() {
        let encoded = |content: &[u8]| block(Header::of(Kind::Process, 0), content).unwrap();
        let mut damaged = encoded(&encoded(b"within"));
        damaged[SUMMED - 1] ^= 1;
        let file = [damaged, encoded(b"behind")].concat();
        for (most_in_vain, expected) in
            [(MOST_IN_VAIN, &[&b"within"[..], b"behind"][..]), (0, &[b"behind"])]
        {
            let reader = Reader { most_in_vain, ..Reader::new(&file[..]) };
            let found: Vec<_> = reader.map(|block| block.unwrap().content).collect();
            assert_eq!(found, expected);
        }
    }
}
