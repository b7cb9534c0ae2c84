// SPDX-License-Identifier: Apache-2.0
//! Compresses into the LZO1X format, as the Linux kernel describes it
//! (Documentation/staging/lzo.rst): the first match that a hash finds is taken.

/// Positions that the hash knows.
const TABLE_BITS: u32 = 13;
/// The shortest match that is looked for.
const SHORTEST: usize = 4;
/// The largest distance that an instruction has room for.
const FARTHEST: usize = 16_384 + 32_767;
/// A match within this distance, and up to this length, takes two bytes.
const NEAR: usize = 2_048;
const NEAR_LENGTH: usize = 8;
/// Up to this distance a match takes three bytes and those of its length.
const MIDDLE: usize = 16_384;
/// An instruction that no match has ends the whole.
const END: [u8; 3] = [17, 0, 0];

/// Positions by what stands there, kept as memory only.
#[derive(Debug)]
pub struct Table(Vec<u32>);

impl Default for Table {
    fn default() -> Self {
        Self(vec![0; 1 << TABLE_BITS])
    }
}

/// Appends `content` to `out`.
pub fn compress(content: &[u8], table: &mut Table, out: &mut Vec<u8>) {
    let begin = out.len();
    let table = &mut table.0;
    table.fill(0);
    let mut literals = 0;
    let mut at = 1;
    let mut misses = 0;
    while let Some(four) = four_at(content, at) {
        let place = &mut table[(four.wrapping_mul(0x9e37_79b1) >> (32 - TABLE_BITS)) as usize];
        let known = std::mem::replace(place, at as u32) as usize;
        if at - known > FARTHEST || four_at(content, known) != Some(four) {
            // What does not repeat is passed the faster the longer it does not.
            misses += 1;
            at += 1 + (misses >> 5);
            continue;
        }
        misses = 0;
        let length = SHORTEST + alike(&content[known + SHORTEST..], &content[at + SHORTEST..]);
        write_literals(&content[literals..at], begin, out);
        write_match(length, at - known, out);
        at += length;
        literals = at;
    }
    write_literals(&content[literals..], begin, out);
    out.extend(END);
}

fn four_at(content: &[u8], at: usize) -> Option<u32> {
    content.get(at..at + SHORTEST)?.try_into().ok().map(u32::from_le_bytes)
}

/// How many bytes both begin with.
fn alike(first: &[u8], second: &[u8]) -> usize {
    const STEP: usize = 8;
    let (first_steps, second_steps) = (first.as_chunks::<STEP>().0, second.as_chunks::<STEP>().0);
    let whole =
        first_steps.iter().zip(second_steps).take_while(|(first, second)| first == second).count()
            * STEP;
    let rest = first[whole..].iter().zip(&second[whole..]);
    whole + rest.take_while(|(first, second)| first == second).count()
}

/// What no match covers. `begin` is where the output has begun.
fn write_literals(literals: &[u8], begin: usize, out: &mut Vec<u8>) {
    let count = literals.len();
    let is_first = out.len() == begin;
    match count {
        0 => {}
        1..=238 if is_first => out.push(17 + count as u8),
        // In the two free bits of the match before.
        1..=3 => {
            let place = out.len() - 2;
            out[place] |= count as u8;
        }
        4..=18 => out.push(count as u8 - 3),
        _ => {
            out.push(0);
            write_length(count - 18, out);
        }
    }
    out.extend(literals);
}

fn write_match(length: usize, distance: usize, out: &mut Vec<u8>) {
    let mut begin = |kind: u8, most: usize| {
        if length - 2 <= most {
            out.push(kind | (length - 2) as u8);
        } else {
            out.push(kind);
            write_length(length - 2 - most, out);
        }
    };
    let back = if distance <= NEAR && length <= NEAR_LENGTH {
        let back = distance - 1;
        out.extend([((length - 1) << 5 | (back & 7) << 2) as u8, (back >> 3) as u8]);
        return;
    } else if distance <= MIDDLE {
        begin(32, 31);
        distance - 1
    } else {
        let back = distance - MIDDLE;
        begin(16 | (back >> 11 & 8) as u8, 7);
        back & (MIDDLE - 1)
    };
    out.extend(((back << 2) as u16).to_le_bytes());
}

/// What does not fit into an instruction: a zero for each 255, and what is left.
fn write_length(mut length: usize, out: &mut Vec<u8>) {
    while length > 255 {
        out.push(0);
        length -= 255;
    }
    out.push(length as u8);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn check(content: &[u8]) -> usize {
        let mut out = vec![9; 3];
        compress(content, &mut Table::default(), &mut out);
        let mut read = vec![0; content.len()];
        assert_eq!(lzokay::decompress::decompress(&out[3..], &mut read), Ok(content.len()));
        assert!(read == content);
        out.len() - 3
    }

    #[test]
    fn matches_of_every_length_and_distance_are_read() {
        let mut state = 7u32;
        let mut noise = |length: usize| -> Vec<u8> {
            let mut next = || {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                (state >> 24) as u8
            };
            (0..length).map(|_| next()).collect()
        };
        for length in (4..50).chain([250, 264, 288, 289, 544, 5_000]) {
            let same = noise(length);
            for between in
                [0, 1, 2, 3, 4, 18, 19, 20, 273, 274, 2_044, 2_050, 16_380, 16_390, 40_000, 49_200]
            {
                let content =
                    [noise(5), same.clone(), noise(between), same.clone(), noise(2)].concat();
                check(&content);
            }
        }
        let far = 49_151;
        for distance in far - 2..far + 3 {
            let same = noise(40);
            check(&[same.clone(), noise(distance - 40), same].concat());
        }
    }

    #[test]
    fn what_repeats_takes_little_and_what_does_not_takes_little_more() {
        assert!(check(&[7; 100_000]) < 500);
        let noise: Vec<u8> =
            (0..100_000u64).map(|n| (n.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 43) as u8).collect();
        assert!(check(&noise) < 101_000);
    }

    proptest! {
        #[test]
        fn all_is_read_as_written(
            pieces in proptest::collection::vec((0..9usize, 1..600usize), 1..60),
            noise in proptest::collection::vec(any::<u8>(), 5_000),
        ) {
            let piece = |(from, length): (usize, usize)| &noise[from * 500..from * 500 + length];
            check(&pieces.into_iter().map(piece).collect::<Vec<_>>().concat());
        }
    }
}
