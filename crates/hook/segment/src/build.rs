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
            Self::Keywords(count) => write!(out, "{count} keywords, at most {KEYWORDS} fit"),
            Self::Length(number) => {
                write!(out, "keyword {} must have 1 to {LONGEST} bytes", number + 1)
            }
            Self::States => write!(out, "the keywords are too long together: use fewer"),
        }
    }
}

impl std::error::Error for TooLarge {}

/// One generation of rules, ready for `Control::publish`.
#[derive(Clone, Debug)]
pub struct Generation {
    attributes: Vec<Attributes>,
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
    /// one. They are few more than the sum, since the longer of two suffixes of one text
    /// tells the shorter.
    pub fn build(keywords: &[Keyword<'_>]) -> Result<Self, TooLarge> {
        if keywords.len() > KEYWORDS {
            return Err(TooLarge::Keywords(keywords.len()));
        }
        let fits = |keyword: &Keyword<'_>| (1..=LONGEST).contains(&keyword.text.len());
        if let Some(number) = keywords.iter().position(|keyword| !fits(keyword)) {
            return Err(TooLarge::Length(number));
        }
        // An automaton of more states would need much memory only to be refused.
        if keywords.iter().map(|keyword| keyword.text.len()).sum::<usize>() > TABLE / 16 {
            return Err(TooLarge::States);
        }
        let halves = [Half::new(keywords, false)?, Half::new(keywords, true)?];
        let (states, rows) = pairs(&halves)?;
        let (class_of, representatives) = classes(&rows);
        let stride = representatives.len() + 1;
        if states.len() * stride > TABLE {
            return Err(TooLarge::States);
        }

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

        let mut table = Vec::with_capacity(states.len() * stride);
        for (row, list) in rows.iter().zip(&lists) {
            table.extend(representatives.iter().map(|byte| {
                let next = row[*byte as usize] as usize;
                (next * stride) as u32 | if lists[next].is_some() { MATCH } else { 0 }
            }));
            table.push(list.unwrap_or(0));
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
        Ok(Self { attributes, class_of, classes: stride as u32 - 1, outputs, table })
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
        for (place, word) in slot.outputs.iter().zip(&self.outputs) {
            place.store(*word, Relaxed);
        }
        for (place, word) in slot.table.iter().zip(&self.table) {
            place.store(*word, Relaxed);
        }
    }
}

/// Every reachable pair of states, the root first, and by pair the number of the pair that
/// each byte leads to.
fn pairs(halves: &[Half; 2]) -> Result<(Vec<Pair>, Vec<[u32; 256]>), TooLarge> {
    let root = [halves[0].start()?, halves[1].start()?];
    let mut states = vec![root];
    let mut numbers = HashMap::from([(root, 0)]);
    let mut rows = vec![];
    while let Some(pair) = states.get(rows.len()).copied() {
        let mut row = [0; 256];
        for (byte, place) in (0..=u8::MAX).zip(&mut row) {
            let step = |half: usize| halves[half].dfa.next_state(Anchored::No, pair[half], byte);
            let next = [step(0), step(1)];
            *place = *numbers.entry(next).or_insert_with(|| {
                states.push(next);
                states.len() as u32 - 1
            });
        }
        rows.push(row);
        // A row has two entries at least.
        if states.len() > TABLE / 2 {
            return Err(TooLarge::States);
        }
    }
    Ok((states, rows))
}

/// Bytes that lead to the same state from every state are one class: by byte its class, and
/// by class its first byte.
fn classes(rows: &[[u32; 256]]) -> ([u8; 256], Vec<u8>) {
    let mut class_of = [0; 256];
    let mut representatives: Vec<u8> = vec![];
    for byte in 0..=u8::MAX {
        let same = |other: &u8| rows.iter().all(|row| row[byte as usize] == row[*other as usize]);
        let class = representatives.iter().position(same).unwrap_or_else(|| {
            representatives.push(byte);
            representatives.len() - 1
        });
        class_of[byte as usize] = class as u8;
    }
    (class_of, representatives)
}
