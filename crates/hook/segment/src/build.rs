// SPDX-License-Identifier: Apache-2.0
//! Builds a generation of rules, in tare-hook.

use crate::rules::{KEYWORDS, LAST, LONGEST, MATCH, OUTPUTS, Rules, TABLE};
use crate::{Action, Attributes, Direction, Directions, Scope};
use aho_corasick::automaton::{Automaton, StateID};
use aho_corasick::dfa::DFA;
use aho_corasick::{Anchored, MatchKind, StartKind};
use core::sync::atomic::Ordering::Relaxed;
use std::collections::HashMap;
use std::vec::Vec;
use std::{fmt, vec};

/// A keyword as the user wrote it.
#[derive(Clone, Debug)]
pub struct Keyword<'a> {
    /// 1 to [`LONGEST`] bytes.
    pub text: &'a [u8],
    /// Whether ASCII letters match in either case.
    pub ignore_case: bool,
    pub scope: Scope,
    pub directions: Directions,
    pub action: Action,
}

/// Why keywords do not fit into a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TooLarge {
    /// More than [`KEYWORDS`].
    Keywords(usize),
    /// Keyword number so-and-so is empty or longer than [`LONGEST`].
    Length(usize),
    /// The automaton has too many states.
    States,
}

impl fmt::Display for TooLarge {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Keywords(count) => write!(
                out,
                "found {count} keywords, expected at most \
                                                  {KEYWORDS}"
            ),
            Self::Length(number) => {
                write!(out, "keyword {}: expected 1 to {LONGEST} bytes", number + 1)
            }
            Self::States => write!(
                out,
                "the keywords need too much memory; use fewer or shorter \
                                         keywords"
            ),
        }
    }
}

impl std::error::Error for TooLarge {}

/// One generation of rules, ready for `Control::publish`.
#[derive(Clone, Debug)]
pub struct Generation {
    attributes: Vec<Attributes>,
    texts: Vec<u8>,
    class_of: [u8; 256],
    classes: u32,
    outputs: Vec<u32>,
    table: Vec<u32>,
}

/// What a state of the whole automaton is: one state of the automaton of case-sensitive
/// keywords, and one of the other.
type Pair = [StateID; 2];

/// The automaton of the keywords that do, or do not, ignore case.
struct Half {
    dfa: DFA,
    /// By pattern: the keyword's number.
    numbers: Vec<u32>,
}

impl Half {
    fn new(keywords: &[Keyword<'_>], ignore_case: bool) -> Result<Self, TooLarge> {
        let mine = || keywords.iter().enumerate().filter(|(_, k)| k.ignore_case == ignore_case);
        let dfa = DFA::builder()
            .match_kind(MatchKind::Standard)
            .start_kind(StartKind::Unanchored)
            .ascii_case_insensitive(ignore_case)
            .build(mine().map(|(_, keyword)| keyword.text))
            .map_err(|_| TooLarge::States)?;
        Ok(Self { dfa, numbers: mine().map(|(number, _)| number as u32).collect() })
    }

    fn start(&self) -> Result<StateID, TooLarge> {
        self.dfa.start_state(Anchored::No).map_err(|_| TooLarge::States)
    }

    fn matches(&self, state: StateID) -> impl Iterator<Item = u32> + '_ {
        let count = if self.dfa.is_match(state) { self.dfa.match_len(state) } else { 0 };
        (0..count).map(move |i| self.numbers[self.dfa.match_pattern(state, i).as_usize()])
    }
}

impl Generation {
    /// Compiles `keywords`; their numbers are their places in the slice.
    ///
    /// The keywords that ignore case and those that do not have an automaton each
    /// (aho-corasick), walked side by side: the reachable pairs of states are the states of
    /// one. They are few more than the sum for words as people write them; what is nearer to
    /// the product is refused for want of room.
    pub fn build(keywords: &[Keyword<'_>]) -> Result<Self, TooLarge> {
        if keywords.len() > KEYWORDS {
            return Err(TooLarge::Keywords(keywords.len()));
        }
        let fits = |keyword: &Keyword<'_>| (1..=LONGEST).contains(&keyword.text.len());
        if let Some(number) = keywords.iter().position(|keyword| !fits(keyword)) {
            return Err(TooLarge::Length(number));
        }
        let (class_of, representatives) = classes(keywords);
        let stride = representatives.len() + 1;
        let room = TABLE / stride;
        // An automaton that has no room alone would need much memory only to be refused.
        if [false, true].into_iter().any(|half| prefixes(keywords, half) >= room) {
            return Err(TooLarge::States);
        }
        let halves = [Half::new(keywords, false)?, Half::new(keywords, true)?];
        let (states, mut table) = pairs(&halves, &representatives, room)?;

        let mut outputs = vec![];
        let mut lists = Vec::with_capacity(states.len());
        for pair in &states {
            let first = outputs.len() as u32;
            for (half, state) in halves.iter().zip(pair) {
                outputs.extend(half.matches(*state));
            }
            let ends = outputs.len() as u32 > first;
            if ends && let Some(last) = outputs.last_mut() {
                *last |= LAST;
            }
            lists.push(ends.then_some(first));
        }
        if outputs.len() > OUTPUTS {
            return Err(TooLarge::States);
        }

        for (row, list) in table.chunks_exact_mut(stride).zip(&lists) {
            for entry in &mut row[..stride - 1] {
                let next = *entry as usize;
                *entry = (next * stride) as u32 | if lists[next].is_some() { MATCH } else { 0 };
            }
            row[stride - 1] = list.unwrap_or(0);
        }
        let attributes = keywords
            .iter()
            .map(|keyword| Attributes {
                length: keyword.text.len() as u16,
                scope: keyword.scope,
                directions: keyword.directions,
                action: keyword.action,
            })
            .collect();
        let texts = keywords.iter().flat_map(|keyword| keyword.text).copied().collect();
        Ok(Self { attributes, texts, class_of, classes: stride as u32 - 1, outputs, table })
    }

    /// Writes everything but the slot's generation.
    pub(crate) fn write(&self, slot: &Rules) {
        let bits = |direction, bit: &dyn Fn(&Attributes) -> u32| {
            self.attributes
                .iter()
                .filter(|keyword| keyword.directions.contain(direction))
                .fold(0, |bits, keyword| bits | bit(keyword))
        };
        slot.keywords.store(self.attributes.len() as u32, Relaxed);
        let longest = self.attributes.iter().map(|keyword| keyword.length).max();
        slot.longest.store(longest.unwrap_or(0).into(), Relaxed);
        slot.classes.store(self.classes, Relaxed);
        slot.entries.store(self.table.len() as u64, Relaxed);
        let mut blocking = 0;
        for direction in [Direction::In, Direction::Out] {
            let wanted = bits(direction, &|keyword| 1 << keyword.scope as u32);
            slot.wanted[direction as usize].store(wanted, Relaxed);
            blocking |= bits(direction, &|keyword| keyword.action as u32) << direction as u32;
        }
        slot.blocking.store(blocking, Relaxed);
        for (place, class) in slot.class_of.iter().zip(self.class_of) {
            place.store(class, Relaxed);
        }
        for (place, keyword) in slot.attributes.iter().zip(&self.attributes) {
            place.store(keyword.to_bits(), Relaxed);
        }
        for (place, byte) in slot.texts.iter().zip(&self.texts) {
            place.store(*byte, Relaxed);
        }
        for (place, word) in slot.outputs.iter().zip(&self.outputs) {
            place.store(*word, Relaxed);
        }
        for (place, word) in slot.table.iter().zip(&self.table) {
            place.store(*word, Relaxed);
        }
    }
}

/// Every reachable pair of states, the root first, and the table of their rows: the numbers
/// of the pairs that each class of bytes leads to, and a place that is still 0. There is
/// `room` for so many rows.
fn pairs(
    halves: &[Half; 2],
    representatives: &[u8],
    room: usize,
) -> Result<(Vec<Pair>, Vec<u32>), TooLarge> {
    let root = [halves[0].start()?, halves[1].start()?];
    let mut states = vec![root];
    let mut numbers = HashMap::from([(root, 0)]);
    let mut table = vec![];
    let mut row = 0;
    while let Some(pair) = states.get(row).copied() {
        for byte in representatives {
            let step = |half: usize| halves[half].dfa.next_state(Anchored::No, pair[half], *byte);
            let next = [step(0), step(1)];
            table.push(*numbers.entry(next).or_insert_with(|| {
                states.push(next);
                states.len() as u32 - 1
            }));
        }
        table.push(0);
        row += 1;
        if states.len() > room {
            return Err(TooLarge::States);
        }
    }
    Ok((states, table))
}

/// Bytes that lead to the same state from every state are one class: by byte its class, and
/// by class its first byte. They are those in the same keywords at the same places: none, or
/// the two cases of a letter where no keyword minds them.
fn classes(keywords: &[Keyword<'_>]) -> ([u8; 256], Vec<u8>) {
    let (mut exact, mut folded) = ([false; 256], [false; 256]);
    for keyword in keywords {
        for byte in keyword.text {
            if keyword.ignore_case {
                folded[usize::from(byte.to_ascii_lowercase())] = true;
            } else {
                exact[usize::from(*byte)] = true;
            }
        }
    }
    let leads_to = |byte: u8| {
        let lower = byte.to_ascii_lowercase();
        (exact[usize::from(byte)].then_some(byte), folded[usize::from(lower)].then_some(lower))
    };
    let mut representatives: Vec<u8> = vec![];
    let class_of = core::array::from_fn(|byte| {
        let byte = byte as u8;
        let known = representatives.iter().position(|other| leads_to(*other) == leads_to(byte));
        known.unwrap_or_else(|| {
            representatives.push(byte);
            representatives.len() - 1
        }) as u8
    });
    (class_of, representatives)
}

/// How many texts, but the empty one, begin a keyword of the half: its states but the root.
fn prefixes(keywords: &[Keyword<'_>], ignore_case: bool) -> usize {
    let mine = keywords.iter().filter(|keyword| keyword.ignore_case == ignore_case);
    let mut texts: Vec<Vec<u8>> =
        mine.map(|keyword| {
            if ignore_case { keyword.text.to_ascii_lowercase() } else { keyword.text.to_vec() }
        })
        .collect();
    texts.sort_unstable();
    let mut before: &[u8] = &[];
    let mut count = 0;
    for text in &texts {
        let common = before.iter().zip(text).take_while(|(a, b)| a == b).count();
        count += text.len() - common;
        before = text;
    }
    count
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn keyword(text: &[u8], ignore_case: bool) -> Keyword<'_> {
        let (scope, directions, action) = (Scope::All, Directions::In, Action::Trace);
        Keyword { text, ignore_case, scope, directions, action }
    }

    #[test]
    fn the_most_pairs_that_two_keywords_can_have_fit() {
        let text = [b'a'; LONGEST];
        let built = Generation::build(&[keyword(&text, false), keyword(&text, true)]).unwrap();
        // "a", "A" and all else, and the list; of i small letters at the end of k letters.
        assert_eq!((built.classes, built.table.len()), (3, 4 * (LONGEST + 1) * (LONGEST + 2) / 2));
    }

    #[test]
    fn what_has_no_room_is_refused() {
        let texts: Vec<_> = (0..=u8::MAX).map(|byte| [byte; 64]).collect();
        let keywords: Vec<_> = texts.iter().map(|text| keyword(text, false)).collect();
        assert_eq!(prefixes(&keywords, false), 256 * 64);
        assert_eq!(Generation::build(&keywords).unwrap_err(), TooLarge::States);
        let words = [keyword(b"aaaa", false), keyword(b"aaaa", true)];
        let halves = [false, true].map(|half| Half::new(&words, half).unwrap());
        let (_, representatives) = classes(&words);
        assert!(pairs(&halves, &representatives, 15).is_ok());
        assert_eq!(pairs(&halves, &representatives, 14).unwrap_err(), TooLarge::States);
    }

    proptest! {
        /// The literal definitions: a class has the bytes whose columns of the table are
        /// equal, and an automaton a state for each beginning of a keyword.
        #[test]
        fn bytes_are_of_one_class_if_they_lead_to_the_same_states(
            words in prop::collection::vec(("[a-cA-C\\x00]{1,5}", any::<bool>()), 0..6),
        ) {
            let keywords: Vec<_> =
                words.iter().map(|(text, fold)| keyword(text.as_bytes(), *fold)).collect();
            let bytes: Vec<u8> = (0..=u8::MAX).collect();
            let halves = [false, true].map(|half| Half::new(&keywords, half).unwrap());
            let (states, table) = pairs(&halves, &bytes, TABLE).unwrap();
            let (class_of, representatives) = classes(&keywords);
            for byte in 0..=255 {
                for (class, other) in representatives.iter().enumerate() {
                    let equal = table.chunks(257).all(|row| row[byte] == row[usize::from(*other)]);
                    prop_assert_eq!(equal, usize::from(class_of[byte]) == class);
                }
            }
            for half in 0..2 {
                let reached: std::collections::HashSet<_> =
                    states.iter().map(|pair| pair[half]).collect();
                prop_assert_eq!(reached.len(), 1 + prefixes(&keywords, half == 1));
            }
        }
    }
}
