// SPDX-License-Identifier: Apache-2.0
use crate::record::event::Ends;
use crate::record::signals;
use crate::search::call::Search;
use core::mem::MaybeUninit;
use core::sync::atomic::Ordering::Relaxed;
use tare_hook_segment::{Action, Event, View};

/// So many are recorded at once, for holding signals takes two system calls. They stand on the
/// stack, which may be a small one for signal handlers.
const TOGETHER: usize = 8;

/// The bytes searched changed their rules meanwhile.
#[derive(Debug, PartialEq, Eq)]
pub struct Torn;

/// One match.
#[derive(Clone, Copy)]
pub struct KeywordMatch {
    pub keyword: u32,
    pub action: Action,
    pub offset: u64,
}

/// Matches of one call, on their way into the ring.
pub struct Matches<'a> {
    search: &'a Search<'a>,
    view: View<'a>,
    ends: Option<Ends>,
    /// The first `count` of them are there; most calls have none, and write none.
    waiting: [MaybeUninit<KeywordMatch>; TOGETHER],
    count: usize,
}

impl<'a> Matches<'a> {
    pub fn new(search: &'a Search<'a>, view: View<'a>) -> Self {
        let waiting = [const { MaybeUninit::uninit() }; TOGETHER];
        Self { search, view, ends: None, waiting, count: 0 }
    }

    /// Takes one more; records all where there is room for no other.
    pub fn add(&mut self, found: KeywordMatch) -> Result<(), Torn> {
        self.waiting[self.count].write(found);
        self.count += 1;
        if self.count == TOGETHER { self.record() } else { Ok(()) }
    }

    /// Counts and records those that wait, if the rules they were found under still hold: all
    /// of them, or none where a signal handler jumps away first.
    pub fn record(&mut self) -> Result<(), Torn> {
        let matches = &self.waiting[..core::mem::take(&mut self.count)];
        // SAFETY: `add` has written them.
        let matches = unsafe { matches.assume_init_ref() };
        if matches.is_empty() {
            return Ok(());
        }
        if !self.view.holds() {
            return Err(Torn);
        }
        let (search, generation) = (self.search, self.view.generation);
        let ends = *self.ends.get_or_insert_with(|| Ends::of(search.fd));
        let blocked = matches.iter().filter(|found| found.action == Action::Block).count();
        let events = matches.iter().map(|found| {
            move |pid, tid| Event {
                ticks: tare_clock::ticks(),
                pid,
                tid,
                generation,
                keyword: found.keyword,
                symbol: search.symbol as u16,
                direction: search.direction,
                action: found.action,
                offset: found.offset,
                family: ends.family,
                local_port: ends.local_port,
                remote_port: ends.remote_port,
                local: ends.local,
                remote: ends.remote,
            }
        });
        let count = || {
            search.counters.matches.fetch_add(matches.len() as u64, Relaxed);
            search.counters.blocked.fetch_add(blocked as u64, Relaxed);
        };
        let is_recorded = signals::held(|| {
            count();
            search.hook.record(events);
        });
        if !is_recorded {
            count();
            search.hook.shared.lost.fetch_add(matches.len() as u64, Relaxed);
        }
        Ok(())
    }
}
