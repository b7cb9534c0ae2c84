// SPDX-License-Identifier: Apache-2.0
//! Replies over TCP: wherever they are cut, they end at the same byte with the same outcome, and
//! never above their limit.
#![no_main]

use arbitrary::{Arbitrary, Unstructured};
use libfuzzer_sys::fuzz_target;
use tare_load_replies::{Refusal, Resp, Search, Until};

#[derive(Arbitrary, Debug)]
struct Input<'a> {
    limit: u16,
    cuts: Vec<u8>,
    text: &'a [u8],
    bytes: &'a [u8],
}

/// The bytes of the reply, whether it is complete, and whether it is an error.
type Read = Result<(usize, bool, bool), Refusal>;

fn resp<'a>(limit: u64, pieces: impl Iterator<Item = &'a [u8]>) -> Read {
    let mut resp = Resp::new(limit);
    let mut taken = 0;
    for piece in pieces {
        taken += resp.advance(piece)?;
    }
    Ok((taken, resp.is_done(), resp.is_error()))
}

fn until<'a>(limit: u64, text: &Until, pieces: impl Iterator<Item = &'a [u8]>) -> Read {
    let (mut search, mut taken) = (Search::new(limit), 0);
    for piece in pieces {
        let (part, is_end) = search.advance(piece, text)?;
        taken += part;
        if is_end {
            return Ok((taken, true, false));
        }
    }
    Ok((taken, false, false))
}

/// The bytes in pieces of these lengths, the last length over and over.
fn cut<'a>(bytes: &'a [u8], cuts: &'a [u8]) -> impl Iterator<Item = &'a [u8]> {
    let last = cuts.last().copied().unwrap_or(1);
    let mut lengths = cuts.iter().copied().chain(std::iter::repeat(last));
    let mut rest = bytes;
    std::iter::from_fn(move || {
        let length = usize::from(lengths.next()?).clamp(1, rest.len().max(1));
        let (piece, behind) = rest.split_at_checked(length)?;
        rest = behind;
        Some(piece)
    })
}

fuzz_target!(|data: &[u8]| {
    // Not by the macro, which refuses what is shorter than a whole Input.
    let Ok(input) = Input::arbitrary_take_rest(Unstructured::new(data)) else { return };
    let limit = u64::from(input.limit);

    let whole = resp(limit, std::iter::once(input.bytes));
    assert_eq!(whole, resp(limit, cut(input.bytes, &input.cuts)));
    if let Ok((taken, is_done, _)) = whole {
        assert!(taken as u64 <= limit);
        assert!(is_done || taken == input.bytes.len());
    }

    let Some(text) = Until::new(input.text) else { return };
    let found = until(limit, &text, cut(input.bytes, &input.cuts));
    let first = input.bytes.windows(input.text.len()).position(|window| window == input.text);
    let end = first.map(|at| at + input.text.len());
    let bytes = end.unwrap_or(input.bytes.len());
    if bytes as u64 <= limit {
        assert_eq!(found, Ok((bytes, end.is_some(), false)));
    } else {
        assert_eq!(found, Err(Refusal::TooLong));
    }
});
