// SPDX-License-Identifier: Apache-2.0
use crate::connection::Flow;
use crate::finds::{Find, Finds};
use crate::hook::Hook;
use crate::vectors::Vectors;
use core::ffi::c_int;
use core::ops::ControlFlow::{Break, Continue};
use core::sync::atomic::Ordering::Relaxed;
use tare_hook_segment::{Action, Attributes, Counters, Direction, Match, Scope, Unseen, View};
use tare_interpose::{Kind, Symbol};

/// How often a search begins anew under newer rules before it is given up.
const TRIES: u32 = 4;

/// One call that moved, or is to move, bytes through a socket.
#[derive(Clone, Copy)]
pub struct Search<'a> {
    pub hook: Hook,
    /// Of this function, where this thread counts.
    pub counters: &'static Counters,
    pub symbol: Symbol,
    pub fd: c_int,
    pub kind: Kind,
    pub direction: Direction,
    pub flow: &'a Flow,
}

/// What to do about the bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    Pass,
    Block,
}

/// The bytes searched changed their rules meanwhile.
#[derive(Debug, PartialEq, Eq)]
pub struct Torn;

impl Search<'_> {
    /// Searches bytes that went through the socket, and records every match.
    pub fn passed(&self, bytes: Vectors<'_>) -> Outcome {
        let length = bytes.length();
        let outcome = self.run(bytes, length, true);
        if outcome.is_some() {
            self.counters.bytes_searched.fetch_add(length as u64, Relaxed);
        }
        outcome.unwrap_or(Outcome::Pass)
    }

    /// Whether bytes must be searched before they go: also where that is not known, because
    /// the rules are changing.
    #[inline]
    pub fn may_block(&self) -> bool {
        let view = self.hook.control.view();
        view.is_some_and(|view| view.rules.blocks(self.direction) || !view.holds())
    }

    /// The search for one message of several: a datagram has a flow of its own.
    pub fn of_message<'a>(&'a self, datagram: &'a Flow) -> Search<'a> {
        if self.kind.is_stream() { *self } else { Search { flow: datagram, ..*self } }
    }

    /// Searches bytes that the program wants to send for a keyword that blocks, and records
    /// only that one: the others are found once the bytes have gone.
    pub fn ahead(&self, bytes: Vectors<'_>) -> Outcome {
        self.run(bytes, bytes.length(), false).unwrap_or(Outcome::Pass)
    }

    /// `length` bytes went by that could not be seen.
    pub fn skipped(&self, length: usize) {
        self.flow.skip(length);
        if self.hook.control.view().is_some_and(|view| view.rules.wanted(self.direction) != 0) {
            self.counters.bytes_unseen.fetch_add(length as u64, Relaxed);
        }
    }

    /// Searches under the newest rules, and moves the flow on. `None` where no rule wants these
    /// bytes, and where they were given up.
    #[inline]
    fn run(&self, bytes: Vectors<'_>, length: usize, everything: bool) -> Option<Outcome> {
        if self.kind.is_stream() {
            bytes.for_each(|part| self.flow.look(part));
        }
        let outcome = self.under_some_rules(bytes, length, everything);
        if outcome.is_none() {
            self.flow.skip(length);
        }
        outcome
    }

    #[inline]
    fn under_some_rules(
        &self,
        bytes: Vectors<'_>,
        length: usize,
        everything: bool,
    ) -> Option<Outcome> {
        for _ in 0..TRIES {
            let view = self.hook.control.view()?;
            let is_wanted = view.rules.wanted(self.direction) & self.scopes() != 0;
            if !is_wanted && view.holds() {
                return None;
            }
            if let Ok(outcome) = self.under(view, bytes, length, everything) {
                return Some(outcome);
            }
        }
        self.hook.count_unseen(Unseen::Torn);
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
        bytes: Vectors<'_>,
        length: usize,
        everything: bool,
    ) -> Result<Outcome, Torn> {
        let (mut state, mut hit) = (self.flow.state(view.generation), false);
        for part in bytes {
            let scan = view.rules.scan(state, part);
            state = scan.state;
            hit |= scan.hit;
        }
        if !view.holds() {
            return Err(Torn);
        }
        let outcome = if hit { self.report(view, bytes, everything)? } else { Outcome::Pass };
        self.flow.advance(length, view.generation, state);
        Ok(outcome)
    }

    /// The exact pass, for bytes in which some keyword ends. If the rules change under it, it
    /// is repeated, and an event may be recorded twice.
    #[cold]
    #[inline(never)]
    fn report(
        &self,
        view: View<'_>,
        bytes: Vectors<'_>,
        everything: bool,
    ) -> Result<Outcome, Torn> {
        let mut finds = Finds::new(self, view);
        let mut result = Ok(Outcome::Pass);
        let mut state = self.flow.state(view.generation);
        let mut before = self.flow.position();
        for part in bytes {
            state = view.rules.matches(state, part, |found| {
                let Some(keyword) = self.wanted(view, found) else { return Continue(()) };
                let blocks = keyword.action == Action::Block;
                if !everything && !blocks {
                    return Continue(());
                }
                let end = before + found.end as u64;
                let offset = end.saturating_sub(keyword.length.into());
                let find = Find { keyword: found.keyword, action: keyword.action, offset };
                let outcome = if blocks { Outcome::Block } else { Outcome::Pass };
                result = finds.add(find).map(|()| outcome);
                if result == Ok(Outcome::Pass) { Continue(()) } else { Break(()) }
            });
            if result != Ok(Outcome::Pass) {
                break;
            }
            before += part.len() as u64;
        }
        finds.record().and(result)
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
    use crate::vectors::one;
    use tare_hook_segment::{Control, Shared, VERSION};
    use tare_shm::Segment;

    fn segment(kind: u32, size: usize) -> Segment {
        Segment::create(c"test", kind, VERSION, size).unwrap().1
    }

    #[test]
    fn bytes_that_lose_their_rules_again_and_again_are_counted() {
        let rules = segment(Control::KIND, size_of::<Control>());
        // The newest generation is the first, and its slot is being overwritten.
        rules.words(64, 1).unwrap()[0].store(1, Relaxed);
        let shared = segment(Shared::KIND, size_of::<Shared>());
        // SAFETY: both types hold atomics only.
        let (control, shared) = unsafe { (rules.at(0).unwrap(), shared.at::<Shared>(0).unwrap()) };
        let (hook, flow) = (Hook { control, shared }, Flow::default());
        let (symbol, kind, direction) = (Symbol::read, Kind::Tcp, Direction::Out);
        let counters = hook.counters(symbol);
        let search = Search { hook, counters, symbol, fd: -1, kind, direction, flow: &flow };

        assert!(search.may_block());
        let buffer = one(b"needle".as_ptr().cast(), 6);
        // SAFETY: the test's own buffer.
        assert_eq!(search.passed(unsafe { Vectors::new(&buffer, 6) }), Outcome::Pass);
        assert_eq!(hook.statistics().unseen[Unseen::Torn as usize].load(Relaxed), 1);
        assert_eq!(flow.position(), 6);
    }
}
