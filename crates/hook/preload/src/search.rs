// SPDX-License-Identifier: Apache-2.0
use crate::connection::Flow;
use crate::event::Ends;
use crate::hook::Hook;
use crate::vectors::Vectors;
use core::ffi::c_int;
use core::ops::ControlFlow::{self, Break, Continue};
use core::sync::atomic::Ordering::Relaxed;
use tare_hook_segment::{Action, Attributes, Direction, Event, Match, Scope, Unseen, View};
use tare_interpose::{Kind, Symbol};

/// How often a search begins anew under newer rules before it is given up.
const TRIES: u32 = 4;

/// One call that moved, or is to move, bytes through a socket.
#[derive(Clone, Copy)]
pub struct Search<'a> {
    pub hook: Hook,
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
struct Torn;

impl Search<'_> {
    /// Searches bytes that went through the socket, and records every match.
    pub fn passed(&self, bytes: Vectors<'_>) -> Outcome {
        let length = bytes.length();
        if self.kind.is_stream() {
            bytes.for_each(|part| self.flow.look(part));
        }
        let Some(outcome) = self.under_some_rules(|view| self.run(view, bytes, length, true))
        else {
            self.flow.skip(length);
            return Outcome::Pass;
        };
        self.hook.counters(self.symbol).bytes_searched.fetch_add(length as u64, Relaxed);
        outcome
    }

    /// Whether bytes must be searched before they go.
    #[inline]
    pub fn may_block(&self) -> bool {
        self.hook.control.view().is_some_and(|view| view.rules.blocks(self.direction))
    }

    /// The same search for another datagram.
    pub fn next<'a>(&self, flow: &'a Flow) -> Search<'a> {
        Search { flow, ..*self }
    }

    /// Searches bytes that the program wants to send for a keyword that blocks, and records
    /// only that one: the others are found once the bytes have gone.
    pub fn ahead(&self, bytes: Vectors<'_>) -> Outcome {
        // A copy: nothing has gone by yet.
        let flow = Flow::default();
        flow.copy(self.flow);
        let ahead = Search { flow: &flow, ..*self };
        if self.kind.is_stream() {
            bytes.for_each(|part| flow.look(part));
        }
        let length = bytes.length();
        ahead
            .under_some_rules(|view| ahead.run(view, bytes, length, false))
            .unwrap_or(Outcome::Pass)
    }

    /// `length` bytes went by that could not be seen.
    pub fn skipped(&self, length: usize) {
        self.flow.skip(length);
        if self.hook.control.view().is_some_and(|view| view.rules.wanted(self.direction) != 0) {
            self.hook.counters(self.symbol).bytes_unseen.fetch_add(length as u64, Relaxed);
        }
    }

    /// `None` where no rule wants these bytes.
    fn under_some_rules(
        &self,
        search: impl Fn(View<'_>) -> Result<Outcome, Torn>,
    ) -> Option<Outcome> {
        for _ in 0..TRIES {
            let view = self.hook.control.view()?;
            if view.rules.wanted(self.direction) & self.scopes() == 0 {
                return None;
            }
            if let Ok(outcome) = search(view) {
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
    fn run(
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
        let mut ends = None;
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
                if !view.holds() {
                    result = Err(Torn);
                    return Break(());
                }
                let ends = *ends.get_or_insert_with(|| Ends::of(self.fd));
                let end = before + found.end as u64;
                self.record(view, found, keyword, end, ends);
                if blocks {
                    result = Ok(Outcome::Block);
                    return Break(());
                }
                ControlFlow::Continue(())
            });
            if !matches!(result, Ok(Outcome::Pass)) {
                break;
            }
            before += part.len() as u64;
        }
        result
    }

    /// What the keyword found wants, if it wants it here.
    fn wanted(&self, view: View<'_>, found: Match) -> Option<Attributes> {
        let keyword = view.rules.attributes(found.keyword)?;
        let here = keyword.directions.contain(self.direction)
            && self.scopes() & 1 << keyword.scope as u32 != 0;
        here.then_some(keyword)
    }

    fn record(&self, view: View<'_>, found: Match, keyword: Attributes, end: u64, ends: Ends) {
        let counters = self.hook.counters(self.symbol);
        counters.matches.fetch_add(1, Relaxed);
        if keyword.action == Action::Block {
            counters.blocked.fetch_add(1, Relaxed);
        }
        self.hook.record(|pid, tid| Event {
            ticks: tare_clock::ticks(),
            pid,
            tid,
            generation: view.generation,
            keyword: found.keyword,
            symbol: self.symbol as u16,
            direction: self.direction,
            action: keyword.action,
            offset: end.saturating_sub(keyword.length.into()),
            family: ends.family,
            local_port: ends.local_port,
            remote_port: ends.remote_port,
            local: ends.local,
            remote: ends.remote,
        });
    }
}
