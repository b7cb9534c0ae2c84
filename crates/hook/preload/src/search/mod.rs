// SPDX-License-Identifier: Apache-2.0
//! Searches the bytes of a call for keywords, and records the matches.

mod call;
mod http_detection;
mod matches;

use crate::connection::Flow;
use crate::memory::vectors::Bytes;
pub use crate::search::call::Search;
use crate::search::http_detection::ENOUGH;
use crate::search::matches::{KeywordMatch, Matches, Torn};
use crate::thread::Thread;
use core::ops::ControlFlow::{Break, Continue};
use core::sync::atomic::Ordering::{AcqRel, Relaxed};
use core::sync::atomic::compiler_fence;
use tare_hook_segment::{Action, Attributes, Match, Scope, Unseen, View};
use tare_interpose::Kind;

/// How often a search begins anew under newer rules before it is given up.
const TRIES: u32 = 4;

/// What to do about the bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    Pass,
    Block,
}

impl Search<'_> {
    /// Searches `length` bytes that went through the socket, and records every match.
    pub fn passed(&self, bytes: impl Bytes, length: usize) -> Outcome {
        let Some((outcome, seen)) = self.run(bytes, true) else {
            self.flow.skip(length);
            return Outcome::Pass;
        };
        self.counters.bytes_searched.fetch_add(seen as u64, Relaxed);
        if seen < length {
            self.skipped(length - seen);
        }
        outcome
    }

    /// Whether bytes must be searched before they go: also where that is not known, because
    /// the rules are changing.
    #[inline]
    pub fn may_block(&self) -> bool {
        let view = self.hook.rules();
        view.is_some_and(|view| view.rules.blocks(self.direction) || !view.holds())
    }

    /// The search for one message of several: a datagram has a flow of its own.
    pub fn of_message<'a>(&'a self, datagram: &'a Flow) -> Search<'a> {
        if self.kind.is_stream() { *self } else { Search { flow: datagram, ..*self } }
    }

    /// Searches bytes that the program wants to send for a keyword that blocks, and records
    /// only that one: the others are found once the bytes have gone.
    pub fn ahead(&self, bytes: impl Bytes) -> Outcome {
        self.run(bytes, false).map_or(Outcome::Pass, |(outcome, _)| outcome)
    }

    /// `length` bytes went by that could not be seen.
    pub fn skipped(&self, length: usize) {
        self.flow.skip(length);
        if self.hook.rules().is_some_and(|view| view.rules.wanted(self.direction) != 0) {
            self.counters.bytes_unseen.fetch_add(length as u64, Relaxed);
        }
    }

    /// Searches under the newest rules, and moves the flow on by the bytes that could be seen, whose
    /// number it says. `None` where no rule wants these bytes, and where they were given up.
    #[inline]
    fn run(&self, bytes: impl Bytes, everything: bool) -> Option<(Outcome, usize)> {
        let searching = &Thread::get().state.searching;
        // Not by one instruction: only handlers of this thread come in between, and set it back.
        let before = searching.load(Relaxed);
        searching.store(1, Relaxed);
        compiler_fence(AcqRel);
        let found = self.under_newest(bytes, everything);
        compiler_fence(AcqRel);
        searching.store(before, Relaxed);
        found
    }

    #[inline]
    fn under_newest(&self, bytes: impl Bytes, everything: bool) -> Option<(Outcome, usize)> {
        if self.kind.is_stream() && self.flow.is_open() {
            // Bytes that cannot be seen decide nothing.
            let _ = bytes.each(ENOUGH, |part| {
                self.flow.look(part);
                Continue(())
            });
        }
        let mut reason = Unseen::Torn;
        for _ in 0..TRIES {
            let view = self.hook.rules()?;
            let is_wanted = view.rules.wanted(self.direction) & self.scopes() != 0;
            if !is_wanted && view.holds() {
                return None;
            }
            if !view.is_mapped() {
                reason = Unseen::Unmapped;
            } else if let Ok(found) = self.under(view, bytes, everything) {
                return Some(found);
            }
        }
        self.hook.count_unseen(reason);
        None
    }

    /// The scopes that the socket is in, as bits.
    #[inline]
    fn scopes(&self) -> u32 {
        let http = u32::from(self.kind.is_stream() && self.flow.is_http());
        let tcp = u32::from(self.kind == Kind::Tcp);
        http << Scope::Http as u32 | tcp << Scope::Tcp as u32 | 1 << Scope::All as u32
    }

    #[inline]
    fn under(
        &self,
        view: View<'_>,
        bytes: impl Bytes,
        everything: bool,
    ) -> Result<(Outcome, usize), Torn> {
        let (mut state, mut hit) = (self.flow.state(view.generation), false);
        let seen = bytes.each(usize::MAX, |part| {
            let scan = view.scan(state, part);
            state = scan.state;
            hit |= scan.hit;
            Continue(())
        });
        if !view.holds() {
            return Err(Torn);
        }
        if seen.is_err() && !everything {
            self.hook.count_unseen(Unseen::Unblocked);
        }
        let outcome = if hit { self.report(view, bytes, everything)? } else { Outcome::Pass };
        let seen = seen.unwrap_or(0);
        self.flow.advance(seen, view.generation, state);
        Ok((outcome, seen))
    }

    /// The exact pass, for bytes in which some keyword ends. If the rules change under it, it
    /// is repeated, and an event may be recorded twice.
    #[cold]
    #[inline(never)]
    fn report(&self, view: View<'_>, bytes: impl Bytes, everything: bool) -> Result<Outcome, Torn> {
        let mut matches = Matches::new(self, view);
        let mut result = Ok(Outcome::Pass);
        let mut state = self.flow.state(view.generation);
        let mut before = self.flow.position();
        let _ = bytes.each(usize::MAX, |part| {
            state = view.matches(state, part, |found| {
                let Some(keyword) = self.wanted(view, found) else { return Continue(()) };
                let blocks = keyword.action == Action::Block;
                if !everything && !blocks {
                    return Continue(());
                }
                let end = before + found.end as u64;
                let offset = end.saturating_sub(keyword.length.into());
                let matched =
                    KeywordMatch { keyword: found.keyword, action: keyword.action, offset };
                let outcome = if blocks { Outcome::Block } else { Outcome::Pass };
                result = matches.add(matched).map(|()| outcome);
                if result == Ok(Outcome::Pass) { Continue(()) } else { Break(()) }
            });
            before += part.len() as u64;
            if result == Ok(Outcome::Pass) { Continue(()) } else { Break(()) }
        });
        matches.record().and(result)
    }

    /// What the keyword found wants, if it wants it here.
    fn wanted(&self, view: View<'_>, found: Match) -> Option<Attributes> {
        let keyword = view.rules.attributes(found.keyword)?;
        let here = keyword.directions.contain(self.direction)
            && self.scopes() & 1 << keyword.scope as u32 != 0;
        here.then_some(keyword)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::kernel_copy::Copied;
    use crate::record::hook::Hook;
    use tare_hook_segment::{Control, Direction, Rules, Shared, Symbol, VERSION};
    use tare_shm::Segment;

    fn segment(kind: u32, size: usize) -> Segment {
        Segment::create(c"test", kind, VERSION, size).unwrap().1
    }

    /// What is counted when rules whose first words are these search a write.
    fn unseen(words: &[(usize, u64)]) -> Vec<u64> {
        let rules = segment(Control::KIND, size_of::<Control>());
        for (offset, word) in words {
            rules.words(*offset, 1).unwrap()[0].store(*word, Relaxed);
        }
        let shared = segment(Shared::KIND, size_of::<Shared>());
        // SAFETY: both types hold atomics only.
        let (control, shared) = unsafe { (rules.at(0).unwrap(), shared.at::<Shared>(0).unwrap()) };
        let (hook, flow) = (Hook { control, shared }, Flow::default());
        let (symbol, kind, direction) = (Symbol::read, Kind::Tcp, Direction::Out);
        let counters = hook.counters(symbol);
        let search = Search { hook, counters, symbol, fd: -1, kind, direction, flow: &flow };

        assert!(search.may_block());
        let bytes = Copied::one(b"needle".as_ptr().cast(), 6, 6);
        assert_eq!(search.passed(bytes, 6), Outcome::Pass);
        assert_eq!(flow.position(), 6);
        hook.statistics().unseen.iter().map(|count| count.load(Relaxed)).collect()
    }

    fn only(what: Unseen) -> Vec<u64> {
        Unseen::ALL.iter().map(|unseen| u64::from(*unseen == what)).collect()
    }

    #[test]
    fn bytes_that_lose_their_rules_again_and_again_are_counted() {
        // The newest generation is the first, and its slot is being overwritten.
        assert_eq!(unseen(&[(64, 1)]), only(Unseen::Torn));
    }

    #[test]
    fn bytes_whose_rules_are_not_mapped_are_counted() {
        let slot = 4096 + size_of::<Rules>();
        // The scope of all sockets is wanted of what goes out, and may block; a table without end.
        let words = [
            (64, 1),
            (slot, 1),
            (slot + 24, 2 << 32 | 1 << Scope::All as u32),
            (slot + 32, u64::MAX),
        ];
        assert_eq!(unseen(&words), only(Unseen::Unmapped));
    }
}
