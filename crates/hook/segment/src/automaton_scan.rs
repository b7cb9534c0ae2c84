// SPDX-License-Identifier: Apache-2.0
use crate::View;
use crate::rules::{KEYWORDS, LAST, MATCH, OUTPUTS, STATE};
use core::ops::ControlFlow;
use core::sync::atomic::Ordering::Relaxed;

/// The state before the first byte.
pub const ROOT: u32 = 0;

/// From this length on, four cursors are faster than one.
const MANY: usize = 32;

/// What a scan found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scan {
    /// The state after the last byte.
    pub state: u32,
    /// Whether some keyword ended in these bytes.
    pub hit: bool,
}

/// A keyword that ended in the bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Match {
    /// Offset after its last byte, in the bytes given.
    pub end: usize,
    /// Its number.
    pub keyword: u32,
}

impl View<'_> {
    /// Walks the automaton over `bytes` from `state` on, and says whether any keyword ends
    /// there: the fast pass, which nearly always says no.
    #[inline]
    pub fn scan(&self, state: u32, bytes: &[u8]) -> Scan {
        if self.mask == STATE {
            self.walk::<true>(state, bytes)
        } else {
            self.walk_part(state, bytes)
        }
    }

    #[cold]
    fn walk_part(&self, state: u32, bytes: &[u8]) -> Scan {
        self.walk::<false>(state, bytes)
    }

    /// `WHOLE`: the table is mapped to its end. As a variable, the mask takes 8 % of the time.
    #[inline]
    fn walk<const WHOLE: bool>(&self, state: u32, bytes: &[u8]) -> Scan {
        let overlap = (self.rules.longest.load(Relaxed) as usize).saturating_sub(1);
        // A cursor walks over a quarter of what is not overlap, and over the overlap.
        let found = if bytes.len() >= MANY && overlap <= bytes.len() / 3 * 2 {
            self.scan_four::<WHOLE>(state, bytes, overlap)
        } else {
            self.scan_one::<WHOLE>(state, bytes)
        };
        Scan { state: found & STATE, hit: found & MATCH != 0 }
    }

    /// The last entry, with `MATCH` where any entry had it.
    #[inline]
    fn scan_one<const WHOLE: bool>(&self, state: u32, bytes: &[u8]) -> u32 {
        let (mut entry, mut seen) = (state, 0);
        for byte in bytes {
            entry = self.step::<WHOLE>(entry, *byte);
            seen |= entry;
        }
        entry & STATE | seen & MATCH
    }

    /// Four cursors side by side, so that four chains of dependent loads overlap. Their
    /// windows are shifted by a share of the bytes each and overlap by one byte less than the
    /// longest keyword: one that ends in a window behind its overlap begins in that window.
    /// There, too, the state is the one that a walk from the very beginning has.
    fn scan_four<const WHOLE: bool>(&self, state: u32, bytes: &[u8], overlap: usize) -> u32 {
        let share = (bytes.len() - overlap) / 4;
        let window = |cursor: usize| &bytes[cursor * share..(cursor + 1) * share + overlap];
        let (mut a, mut b, mut c, mut d) = (state, ROOT, ROOT, ROOT);
        let mut seen = 0;
        for (((w, x), y), z) in window(0).iter().zip(window(1)).zip(window(2)).zip(window(3)) {
            a = self.step::<WHOLE>(a, *w);
            b = self.step::<WHOLE>(b, *x);
            c = self.step::<WHOLE>(c, *y);
            d = self.step::<WHOLE>(d, *z);
            seen |= a | b | c | d;
        }
        self.scan_one::<WHOLE>(d & STATE, &bytes[4 * share + overlap..]) | seen & MATCH
    }

    /// Walks over `bytes` from `state` on and calls `each` for every keyword that ends
    /// there, in order of its end, until it breaks. Says the state after the last byte
    /// walked.
    pub fn matches(
        &self,
        state: u32,
        bytes: &[u8],
        mut each: impl FnMut(Match) -> ControlFlow<()>,
    ) -> u32 {
        let mut entry = state;
        for (index, byte) in bytes.iter().enumerate() {
            entry = self.step::<false>(entry, *byte);
            if entry & MATCH != 0
                && self.outputs(entry, |keyword| each(Match { end: index + 1, keyword })).is_break()
            {
                break;
            }
        }
        entry & STATE
    }

    /// Calls `each` for the keywords that end in the state of `entry`.
    fn outputs(&self, entry: u32, mut each: impl FnMut(u32) -> ControlFlow<()>) -> ControlFlow<()> {
        let first = self.entry::<false>(entry, self.rules.classes.load(Relaxed)) as usize;
        // No list is longer than there are keywords: a damaged one ends, too.
        let longest = (self.rules.keywords.load(Relaxed) as usize).min(KEYWORDS);
        for index in first..first + longest {
            let word = self.rules.outputs[index & (OUTPUTS - 1)].load(Relaxed);
            each(word & !LAST)?;
            if word & LAST != 0 {
                break;
            }
        }
        ControlFlow::Continue(())
    }

    #[inline(always)]
    fn step<const WHOLE: bool>(&self, entry: u32, byte: u8) -> u32 {
        let class = self.rules.class_of[byte as usize].load(Relaxed);
        self.entry::<WHOLE>(entry, class.into())
    }

    /// The entry of a class of bytes in the row of the state that `entry` leads to.
    #[inline(always)]
    fn entry<const WHOLE: bool>(&self, entry: u32, class: u32) -> u32 {
        let mask = if WHOLE { STATE } else { self.mask & STATE };
        self.rules.table[(entry.wrapping_add(class) & mask) as usize].load(Relaxed)
    }
}
