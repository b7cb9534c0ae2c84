// SPDX-License-Identifier: Apache-2.0
//! `tare-spans decode`: messages of a topic on standard input, each after its length in four bytes,
//! the most significant first.

use crate::arguments::Decode;
use crate::jaeger;
use crate::output::Output;
use crate::server::{Exporter, Format, Held, LARGEST, Refusal};
use serde_json::json;
use std::io::{self, BufReader, Read};
use std::process::ExitCode;
use tare_command::{Failure, ResultExt, open_in_place};
use tare_tables::Vacant;
use tokio::runtime::Builder;

pub fn run(wanted: &Decode) -> Result<ExitCode, Failure> {
    let keys = wanted.attributes.keys()?;
    let name = wanted.out.display().to_string();
    let file = open_in_place(&wanted.out).and_then(Vacant::of).or_input(&name)?;
    let (output, written, _) = Output::begin(file, &keys).or_failed(&name)?;
    let exporter = Exporter::new(output, keys);
    let runtime = Builder::new_current_thread().enable_time().build().or_failed("tokio")?;
    let mut input = BufReader::new(io::stdin().lock());
    let (mut empty, mut first_refusal, mut is_stuck) = (0_u64, None, false);
    while let Some(message) = next(&mut input).or_failed("standard input")? {
        let known = exporter.counts().all_spans();
        let decoded = message.and_then(|bytes| {
            let format = format_of(&bytes);
            runtime.block_on(exporter.export(Held::from(bytes), None, format))
        });
        match decoded {
            Ok(_) => empty += u64::from(exporter.counts().all_spans() == known),
            Err(Refusal::Busy) => {
                is_stuck = true;
                break;
            }
            Err(refusal) => {
                exporter.count_refusal();
                first_refusal.get_or_insert_with(|| refusal.message());
            }
        }
    }
    let mut counts = exporter.counts().json();
    drop(exporter);
    written.finish().or_failed(&name)?;
    if is_stuck {
        return Err(Failure::work(format_args!("{name}: the disk is too slow")));
    }
    counts["empty"] = json!(empty);
    counts["first_refusal"] = json!(first_refusal);
    tare_command::print(format_args!("{counts}\n"))?;
    Ok(ExitCode::SUCCESS)
}

/// The next message, or why it was skipped; None at the end.
fn next(input: &mut impl Read) -> io::Result<Option<Result<Vec<u8>, Refusal>>> {
    let mut length = [0; 4];
    if input.read(&mut length[..1])? == 0 {
        return Ok(None);
    }
    input.read_exact(&mut length[1..])?;
    let length = u32::from_be_bytes(length) as usize;
    if length > LARGEST {
        let skipped = io::copy(&mut input.take(length as u64), &mut io::sink())?;
        return if skipped == length as u64 {
            Ok(Some(Err(Refusal::TooLarge)))
        } else {
            Err(io::ErrorKind::UnexpectedEof.into())
        };
    }
    let mut bytes = vec![0; length];
    input.read_exact(&mut bytes)?;
    Ok(Some(Ok(bytes)))
}

fn format_of(message: &[u8]) -> Format {
    if jaeger::is_span(message) {
        Format::Jaeger
    } else if message.trim_ascii_start().starts_with(b"{") {
        Format::Json
    } else {
        Format::Protobuf
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_read_one_by_one() {
        let too_large = u32::try_from(LARGEST + 1).unwrap().to_be_bytes();
        let mut bytes = [0, 0, 0, 2, b'a', b'b', 0, 0, 0, 0].to_vec();
        bytes.extend(too_large);
        bytes.extend(vec![7; LARGEST + 1]);
        let mut input = &bytes[..];
        assert_eq!(next(&mut input).unwrap(), Some(Ok(b"ab".to_vec())));
        assert_eq!(next(&mut input).unwrap(), Some(Ok(Vec::new())));
        assert_eq!(next(&mut input).unwrap(), Some(Err(Refusal::TooLarge)));
        assert_eq!(next(&mut input).unwrap(), None);
    }

    #[test]
    fn an_end_within_a_message_is_an_error() {
        let too_large = [u32::MAX.to_be_bytes().to_vec(), vec![0; 5]].concat();
        for cut in [&[0, 0][..], &[0, 0, 0, 2, b'a'], &too_large[..]] {
            assert!(next(&mut { cut }).is_err(), "{cut:?}");
        }
    }

    #[test]
    fn formats_are_distinguished_by_their_first_bytes() {
        assert_eq!(format_of(b" \n{}"), Format::Json);
        assert_eq!(format_of(&[0x0a, 2, 0x0a, 0]), Format::Protobuf);
        let ids = [&[0x0a, 16][..], &[1; 16], &[0x12, 8], &[2; 8]].concat();
        assert_eq!(format_of(&ids), Format::Jaeger);
    }
}
