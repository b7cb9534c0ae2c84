// SPDX-License-Identifier: Apache-2.0
//! The walk over the flat table against a literal search and against aho-corasick's own, on
//! texts cut in any way; and over tables that no builder writes.

use aho_corasick::{AhoCorasick, MatchKind};
use proptest::prelude::*;
use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use tare_hook_segment::{
    Action, Control, Directions, Generation, KEYWORDS, Keyword, Match, OUTPUTS, ROOT, Scope,
    VERSION, View,
};
use tare_shm::{Access, Segment};

/// A word, and whether its letters match in either case.
type Word = (Vec<u8>, bool);

/// End and number of every match.
type Ends = BTreeSet<(usize, u32)>;

fn segment() -> Segment {
    Segment::create(c"test", Control::KIND, VERSION, size_of::<Control>()).unwrap().1
}

fn control(segment: Segment) -> &'static Control {
    // SAFETY: atomics only.
    unsafe { segment.at(0) }.unwrap()
}

fn compile(words: &[Word]) -> Generation {
    let keyword = |(text, ignore_case): &'_ Word| Keyword {
        text: text.clone().leak(),
        ignore_case: *ignore_case,
        scope: Scope::All,
        directions: Directions::In,
        action: Action::Trace,
    };
    Generation::build(&words.iter().map(keyword).collect::<Vec<_>>()).unwrap()
}

/// Every match, the pieces walked one after the other as calls of `read` would bring them.
fn walk<'t>(view: View<'_>, pieces: impl Iterator<Item = &'t [u8]>) -> Ends {
    let (mut state, mut before, mut ends) = (ROOT, 0, Ends::new());
    for piece in pieces {
        let mut found = false;
        let next = view.matches(state, piece, |Match { end, keyword }| {
            found = true;
            assert!(ends.insert((before + end, keyword)), "found once");
            ControlFlow::Continue(())
        });
        let scan = view.scan(state, piece);
        assert_eq!((scan.state, scan.hit), (next, found), "the fast pass says the same");
        state = next;
        before += piece.len();
    }
    ends
}

fn literal(words: &[Word], text: &[u8]) -> Ends {
    let mut ends = Ends::new();
    for (number, (word, ignore_case)) in words.iter().enumerate() {
        for (start, window) in text.windows(word.len()).enumerate() {
            let equal =
                if *ignore_case { window.eq_ignore_ascii_case(word) } else { window == word };
            if equal {
                ends.insert((start + word.len(), number as u32));
            }
        }
    }
    ends
}

fn overlapping(words: &[Word], text: &[u8]) -> Ends {
    let mut ends = Ends::new();
    for half in [false, true] {
        let mine = || words.iter().enumerate().filter(|(_, (_, ignore_case))| *ignore_case == half);
        let automaton = AhoCorasick::builder()
            .match_kind(MatchKind::Standard)
            .ascii_case_insensitive(half)
            .build(mine().map(|(_, (word, _))| word))
            .unwrap();
        let numbers: Vec<usize> = mine().map(|(number, _)| number).collect();
        let found = automaton.find_overlapping_iter(text);
        ends.extend(found.map(|m| (m.end(), numbers[m.pattern().as_usize()] as u32)));
    }
    ends
}

/// Few letters, so that words begin, end and repeat inside each other.
fn text(length: impl Into<prop::collection::SizeRange>) -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(prop::sample::select(b"abAB\0\xff".as_slice()), length)
}

fn words() -> impl Strategy<Value = Vec<Word>> {
    let word = prop_oneof![9 => text(1..6), 1 => text(20..60)];
    prop::collection::vec((word, any::<bool>()), 0..12)
}

proptest! {
    #[test]
    fn every_walk_finds_what_a_literal_search_finds(
        words in words(),
        text in text(0..400),
        cuts in prop::collection::vec(0usize..400, 0..6),
    ) {
        static SEGMENT: LazyLock<Segment> = LazyLock::new(segment);
        let control = control(*SEGMENT);
        control.publish(&compile(&words));
        let view = control.view().unwrap();

        let expected = literal(&words, &text);
        prop_assert_eq!(&overlapping(&words, &text), &expected);
        prop_assert_eq!(&walk(view, std::iter::once(text.as_slice())), &expected);
        prop_assert_eq!(&walk(view, text.chunks(1)), &expected);
        let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(text.len())).collect();
        cuts.extend([0, text.len()]);
        cuts.sort_unstable();
        let pieces = cuts.windows(2).map(|cut| &text[cut[0]..cut[1]]);
        prop_assert_eq!(&walk(view, pieces), &expected);
        prop_assert!(view.holds());
    }

    #[test]
    fn the_fast_pass_misses_no_word_anywhere(
        (word, place, length) in (1usize..40, 48usize..300).prop_flat_map(|(word, length)| {
            (Just(word.min(length)), 0..=length - word.min(length), Just(length))
        }),
    ) {
        static SEGMENT: LazyLock<Segment> = LazyLock::new(segment);
        let control = control(*SEGMENT);
        let letters: Vec<u8> = (b'0'..).take(word).collect();
        control.publish(&compile(&[(letters.clone(), false)]));
        let view = control.view().unwrap();
        let mut text = vec![b'.'; length];
        text[place..place + word].copy_from_slice(&letters);
        prop_assert!(view.scan(ROOT, &text).hit);
        text[place] = b'.';
        prop_assert!(!view.scan(ROOT, &text).hit);
    }

    #[test]
    fn damaged_rules_neither_panic_nor_hang(
        seed in prop::collection::vec(any::<u64>(), 1..64),
        state: u32,
        text in text(0..400),
    ) {
        static SEGMENT: LazyLock<Segment> = LazyLock::new(segment);
        let control = control(*SEGMENT);
        let rules = compile(&[(b"ab".to_vec(), false)]);
        while control.publish(&rules).is_multiple_of(2) {}
        // An odd generation stands in the second slot, behind its number.
        let words = SEGMENT.words(slot(1) + 8, 1 << 16).unwrap();
        for (word, value) in words.iter().zip(seed.iter().cycle()) {
            word.store(*value, Relaxed);
        }
        let view = control.view().unwrap();
        view.scan(state, &text);
        view.matches(state, &text, |found| {
            assert!(found.end <= text.len());
            view.rules.attributes(found.keyword);
            ControlFlow::Continue(())
        });
    }
}

/// Where slot `number` stands in the segment.
fn slot(number: usize) -> usize {
    4096 + number * (size_of::<Control>() - 4096) / 2
}

#[test]
fn a_list_without_an_end_ends_after_all_keywords() {
    let segment = segment();
    let control = control(segment);
    control.publish(&compile(&[(b"ab".to_vec(), false)]));
    // As many keywords as a number can say, and no last one in any list.
    let counts = segment.words(slot(1) + 8, 1).unwrap();
    counts[0].store(u64::from(u32::MAX), Relaxed);
    let lists = segment.words(slot(1) + 320 + 4 * KEYWORDS, OUTPUTS / 2).unwrap();
    lists.iter().for_each(|words| words.store(0, Relaxed));
    let mut calls = 0;
    control.view().unwrap().matches(ROOT, b"ab", |_| {
        calls += 1;
        if calls > KEYWORDS { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    assert_eq!(calls, KEYWORDS);
}

#[test]
fn rules_that_are_being_overwritten_are_told_from_none() {
    let segment = segment();
    let control = control(segment);
    assert!(control.view().is_none());
    control.publish(&compile(&[(b"ab".to_vec(), false)]));
    assert!(control.view().unwrap().holds());
    // As a search finds it that took a number and was overtaken by two generations.
    segment.words(slot(1), 1).unwrap()[0].store(0, Relaxed);
    assert!(!control.view().unwrap().holds());
}

#[test]
fn what_is_unneeded_is_not_read() {
    let (fd, written) =
        Segment::create(c"test", Control::KIND, VERSION, size_of::<Control>()).unwrap();
    let read = control(Segment::open(fd, Control::KIND, VERSION, Access::ReadOnly).unwrap());
    let written = control(written);
    let rules = |word: &[u8]| compile(&[(word.to_vec(), false)]);
    written.publish(&rules(b"ab"));
    let mask = read.mask(1000);
    assert_eq!(mask, 1023);
    for unneeded in read.unneeded(mask) {
        // SAFETY: nothing looks behind the mask; that is what is tested.
        unsafe { tare_shm::memory::unmap_pages(unneeded.start, unneeded.end) };
    }
    for word in [b"ab", b"cd"] {
        written.publish(&rules(word));
        let view = read.view_of(mask).unwrap();
        assert!(view.is_mapped());
        assert_eq!(walk(view, [&b"b"[..], word].into_iter()), Ends::from([(3, 0)]));
    }
    let large = vec![b'a'; 1000];
    written.publish(&rules(&large));
    let view = read.view_of(mask).unwrap();
    assert!(!view.is_mapped());
    view.scan(ROOT, &large);
    assert!(read.mask(1) > mask);
}

#[test]
fn a_search_that_meets_new_rules_finds_out() {
    let control = control(segment());
    let rules = [b"aaaa", b"bbbb"].map(|word| compile(&[(word.to_vec(), false)]));
    control.publish(&rules[1]);
    let text = [b'a'; 200];
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for round in 0..3000 {
                control.publish(&rules[round % 2]);
            }
            done.store(true, Relaxed);
        });
        let mut held = 0;
        while !done.load(Relaxed) || held == 0 {
            let Some(view) = control.view() else { continue };
            let hit = view.scan(ROOT, &text).hit;
            if view.holds() {
                held += 1;
                assert_eq!(hit, view.generation % 2 == 0, "generation {}", view.generation);
            }
        }
    });
}

#[test]
fn keywords_that_do_not_fit_are_refused() {
    let keyword = |text| Keyword {
        text,
        ignore_case: false,
        scope: Scope::Http,
        directions: Directions::Both,
        action: Action::Block,
    };
    let long = [b'x'; 1025];
    for (keywords, message) in [
        (vec![keyword(b"a"), keyword(b"")], "keyword 2: expected 1 to 1024 bytes"),
        (vec![keyword(&long)], "keyword 1: expected 1 to 1024 bytes"),
        (vec![keyword(b"a"); 4097], "found 4097 keywords, expected at most 4096"),
    ] {
        assert_eq!(Generation::build(&keywords).unwrap_err().to_string(), message);
    }
}
