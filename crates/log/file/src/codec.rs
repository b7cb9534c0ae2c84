// SPDX-License-Identifier: Apache-2.0
use crate::columns::Invalid;
use std::io;

/// How the content of a block is compressed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u16)]
pub enum Codec {
    None = 1,
    #[default]
    Zstd = 2,
    Lz4 = 3,
}

/// The fastest that still finds what repeats: columns with deltas leave little else.
const ZSTD_LEVEL: i32 = 1;

impl Codec {
    pub const ALL: &[Self] = &[Self::None, Self::Zstd, Self::Lz4];

    /// `content` as it is stored.
    pub fn pack(self, content: &[u8]) -> io::Result<Vec<u8>> {
        match self {
            Self::None => Ok(content.to_vec()),
            Self::Zstd => zstd::bulk::compress(content, ZSTD_LEVEL),
            Self::Lz4 => Ok(lz4_flex::block::compress(content)),
        }
    }

    /// The content of `raw` bytes that was stored.
    pub fn unpack(self, stored: &[u8], raw: usize) -> Result<Vec<u8>, Invalid> {
        let content = match self {
            Self::None => stored.to_vec(),
            Self::Zstd => zstd::bulk::decompress(stored, raw).map_err(|_| Invalid)?,
            Self::Lz4 => lz4_flex::block::decompress(stored, raw).map_err(|_| Invalid)?,
        };
        if content.len() == raw { Ok(content) } else { Err(Invalid) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_gives_back_what_it_was_given() {
        for content in [&b""[..], b"a", &[7; 100_000]] {
            for codec in Codec::ALL {
                let stored = codec.pack(content).unwrap();
                assert_eq!(codec.unpack(&stored, content.len()).unwrap(), content);
                assert_eq!(codec.unpack(&stored, content.len() + 1), Err(Invalid));
            }
        }
    }

    #[test]
    fn what_no_codec_has_made_is_refused() {
        for codec in [Codec::Zstd, Codec::Lz4] {
            assert_eq!(codec.unpack(&[0xff; 40], 100), Err(Invalid));
        }
    }
}
