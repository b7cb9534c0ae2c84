// SPDX-License-Identifier: Apache-2.0
use std::io;
use tare_log_segment::block::{HEADER, Header, SUMMED};

/// The whole block: `header`, with lengths and checksum, and `content` as it is stored.
pub fn block(mut header: Header, content: &[u8]) -> io::Result<Vec<u8>> {
    let too_large = || io::Error::other("a block is too large");
    header.stored = u32::try_from(content.len()).map_err(|_| too_large())?;
    let mut block = [&header.bytes(), content].concat();
    let sum = crc32c::crc32c(&block[SUMMED..]);
    block[SUMMED - 4..SUMMED].copy_from_slice(&sum.to_le_bytes());
    Ok(block)
}

/// A block as it was read, whose checksum is right.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Block {
    pub header: Header,
    /// As it is stored.
    pub content: Vec<u8>,
}

impl Block {
    /// How many it has in the file.
    pub fn bytes(&self) -> u64 {
        (HEADER + self.content.len()) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tare_log_segment::block::{Kind, sum};

    #[test]
    fn a_block_is_its_header_its_checksum_and_its_content() {
        let header = Header::of(Kind::Events, 5);
        let block = block(header, b"abc").unwrap();
        let (read, found) = Header::read(block[..HEADER].try_into().unwrap()).unwrap();
        assert_eq!(read, Header { stored: 3, ..header });
        assert_eq!(found, crc32c::crc32c(&block[SUMMED..]));
        assert_eq!(&block[HEADER..], b"abc");
    }

    #[test]
    fn the_checksum_of_programs_is_the_same() {
        let bytes: Vec<u8> = (0..1000u32).map(|n| (n.pow(2) / 7) as u8).collect();
        for length in (0..40).chain([999, 1000]) {
            assert_eq!(sum(&bytes[..length]), crc32c::crc32c(&bytes[..length]), "{length}");
        }
    }
}
