// SPDX-License-Identifier: Apache-2.0
use crate::lzo;
use std::io;
use tare_log_segment::Codec;
use zstd::bulk::Compressor;

/// The content is none that a writer makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Invalid;

/// The fastest that still finds what repeats: columns with deltas leave little else.
const ZSTD_LEVEL: i32 = 1;

/// Compresses, with what the codecs like to keep from one time to the next.
#[derive(Default)]
pub struct Packer {
    zstd: Option<Compressor<'static>>,
    lzo: lzo::Table,
}

impl Packer {
    /// Appends `content` to `out` as it is stored; says its length.
    pub fn pack(&mut self, codec: Codec, content: &[u8], out: &mut Vec<u8>) -> io::Result<usize> {
        let begin = out.len();
        match codec {
            Codec::None => out.extend(content),
            Codec::Zstd => {
                if self.zstd.is_none() {
                    self.zstd = Some(Compressor::new(ZSTD_LEVEL)?);
                }
                if let Some(zstd) = &mut self.zstd {
                    out.resize(begin + zstd::zstd_safe::compress_bound(content.len()), 0);
                    let length = zstd.compress_to_buffer(content, &mut out[begin..])?;
                    out.truncate(begin + length);
                }
            }
            Codec::Lz4 => {
                let most = lz4_flex::block::get_maximum_output_size(content.len());
                out.resize(begin + most, 0);
                let packed = lz4_flex::block::compress_into(content, &mut out[begin..]);
                out.truncate(begin + packed.map_err(io::Error::other)?);
            }
            Codec::Lzo1x => lzo::compress(content, &mut self.lzo, out),
        }
        Ok(out.len() - begin)
    }
}

/// The content of `raw` bytes that was stored.
pub fn unpack(codec: Codec, stored: &[u8], raw: usize) -> Result<Vec<u8>, Invalid> {
    let content = match codec {
        Codec::None => stored.to_vec(),
        Codec::Zstd => zstd::bulk::decompress(stored, raw).map_err(|_| Invalid)?,
        Codec::Lz4 => lz4_flex::block::decompress(stored, raw).map_err(|_| Invalid)?,
        Codec::Lzo1x => {
            let mut content = vec![0; raw];
            let length = lzokay::decompress::decompress(stored, &mut content);
            content.truncate(length.map_err(|_| Invalid)?);
            content
        }
    };
    if content.len() == raw { Ok(content) } else { Err(Invalid) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_gives_back_what_it_was_given() {
        let mut packer = Packer::default();
        let text: Vec<u8> = (0..200_000u32).map(|n| (n.wrapping_mul(n) >> 9) as u8).collect();
        for content in [&b"a"[..], &[7; 100_000], &text] {
            for (_, codec) in Codec::ALL {
                let mut out = vec![1, 2, 3];
                let length = packer.pack(*codec, content, &mut out).unwrap();
                let stored = &out[3..];
                assert_eq!((stored.len(), &out[..3]), (length, &[1, 2, 3][..]));
                let read = unpack(*codec, stored, content.len());
                assert!(read.is_ok_and(|read| read == content), "{codec:?}, {}", content.len());
                assert_eq!(unpack(*codec, stored, content.len() + 1), Err(Invalid));
            }
        }
    }

    #[test]
    fn what_no_codec_has_made_is_refused() {
        for codec in [Codec::Zstd, Codec::Lz4, Codec::Lzo1x] {
            assert_eq!(unpack(codec, &[0xff; 40], 100), Err(Invalid));
        }
    }
}
