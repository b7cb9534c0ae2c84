// SPDX-License-Identifier: Apache-2.0
//! A published automaton finds what comparing everywhere finds; damaged at any place it
//! neither panics nor reads outside nor goes on for ever.
#![no_main]

use arbitrary::Arbitrary;
use libfuzzer_sys::fuzz_target;
use std::alloc::{Layout, alloc_zeroed};
use std::ops::ControlFlow;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU8, Ordering::Relaxed};
use tare_hook_segment::{
    Action, Control, Directions, Generation, Keyword, ROOT, Rules, Scope, View,
};

#[derive(Arbitrary, Debug)]
struct Input<'a> {
    /// Few different letters: then keywords overlap, and texts have many of them.
    few_letters: bool,
    keywords: Vec<(&'a [u8], bool)>,
    text: &'a [u8],
    state: u32,
    damage: Vec<(u32, &'a [u8])>,
}

static CONTROL: LazyLock<&'static Control> = LazyLock::new(|| {
    let layout = Layout::new::<Control>();
    // SAFETY: all zero is a valid Control, which holds nothing but atomics.
    unsafe { &*alloc_zeroed(layout).cast::<Control>() }
});

/// The bytes of the slot, as the other process sees them.
fn bytes(rules: &Rules) -> &[AtomicU8] {
    // SAFETY: Rules holds nothing but atomics.
    unsafe { std::slice::from_raw_parts(std::ptr::from_ref(rules).cast(), size_of::<Rules>()) }
}

fuzz_target!(|input: Input<'_>| {
    let spell = |bytes: &[u8]| match input.few_letters {
        true => bytes.iter().map(|byte| b"abAB"[usize::from(byte & 3)]).collect(),
        false => bytes.to_vec(),
    };
    let text = spell(input.text);
    let words: Vec<(Vec<u8>, bool)> =
        input.keywords.iter().map(|(text, ignore_case)| (spell(text), *ignore_case)).collect();
    let keywords: Vec<Keyword<'_>> = words
        .iter()
        .map(|(text, ignore_case)| Keyword {
            text,
            ignore_case: *ignore_case,
            scope: Scope::All,
            directions: Directions::Both,
            action: Action::Trace,
        })
        .collect();
    let Ok(generation) = Generation::build(&keywords) else { return };
    CONTROL.publish(&generation);
    let view = CONTROL.view().expect("published");
    compare(view, &keywords, &text);

    let slot = bytes(view.rules);
    let mut damaged = Vec::new();
    for (offset, values) in &input.damage {
        for (index, value) in values.iter().enumerate() {
            let place = (*offset as usize + index) % slot.len();
            damaged.push((place, slot[place].swap(*value, Relaxed)));
        }
    }
    let scan = view.scan(input.state, &text);
    let state = view.matches(scan.state, &text, |found| {
        view.rules.attributes(found.keyword);
        ControlFlow::Continue(())
    });
    view.scan(state, &text);
    for (place, value) in damaged.into_iter().rev() {
        slot[place].store(value, Relaxed);
    }
});

fn compare(view: View<'_>, keywords: &[Keyword<'_>], text: &[u8]) {
    let mut found = Vec::new();
    let end = view.matches(ROOT, text, |hit| {
        found.push((hit.end, hit.keyword as usize));
        ControlFlow::Continue(())
    });
    let mut expected = Vec::new();
    for end in 1..=text.len() {
        for (number, keyword) in keywords.iter().enumerate() {
            let Some(start) = end.checked_sub(keyword.text.len()) else { continue };
            let part = &text[start..end];
            let equal = match keyword.ignore_case {
                true => part.eq_ignore_ascii_case(keyword.text),
                false => part == keyword.text,
            };
            if equal {
                expected.push((end, number));
            }
        }
    }
    found.sort_unstable();
    assert_eq!(found, expected);
    let scan = view.scan(ROOT, text);
    assert_eq!(scan.hit, !expected.is_empty());
    assert_eq!(scan.state, end);
}
