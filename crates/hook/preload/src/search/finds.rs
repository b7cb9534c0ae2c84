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
pub struct Find {
    pub keyword: u32,
    pub action: Action,
    pub offset: u64,
}

/// Matches of one call, on their way into the ring.
pub struct Finds<'a> {
    search: &'a Search<'a>,
    view: View<'a>,
    ends: Option<Ends>,
    /// The first `count` of them are there; most calls have none, and write none.
    waiting: [MaybeUninit<Find>; TOGETHER],
    count: usize,
}

impl<'a> Finds<'a> {
    pub fn new(search: &'a Search<'a>, view: View<'a>) -> Self {
        let waiting = [const { MaybeUninit::uninit() }; TOGETHER];
        Self { search, view, ends: None, waiting, count: 0 }
    }

    /// Takes one more; records all where there is room for no other.
    pub fn add(&mut self, find: Find) -> Result<(), Torn> {
        self.waiting[self.count].write(find);
        self.count += 1;
        if self.count == TOGETHER { self.record() } else { Ok(()) }
    }

    /// Counts and records those that wait, if the rules they were found under still hold: all
    /// of them, or none where a signal handler jumps away first.
    pub fn record(&mut self) -> Result<(), Torn> {
        let finds = &self.waiting[..core::mem::take(&mut self.count)];
        // SAFETY: `add` has written them.
        let finds = unsafe { finds.assume_init_ref() };
        if finds.is_empty() {
            return Ok(());
        }
        if !self.view.holds() {
            return Err(Torn);
        }
        let (search, generation) = (self.search, self.view.generation);
        let ends = *self.ends.get_or_insert_with(|| Ends::of(search.fd));
        let blocked = finds.iter().filter(|find| find.action == Action::Block).count();
        let events = finds.iter().map(|find| {
            move |pid, tid| Event {
                ticks: tare_clock::ticks(),
                pid,
                tid,
                generation,
                keyword: find.keyword,
                symbol: search.symbol as u16,
                direction: search.direction,
                action: find.action,
                offset: find.offset,
                family: ends.family,
                local_port: ends.local_port,
                remote_port: ends.remote_port,
                local: ends.local,
                remote: ends.remote,
            }
        });
        let count = || {
            search.counters.matches.fetch_add(finds.len() as u64, Relaxed);
            search.counters.blocked.fetch_add(blocked as u64, Relaxed);
        };
        let is_recorded = signals::held(|| {
            count();
            search.hook.record(events);
        });
        if !is_recorded {
            count();
            search.hook.shared.lost.fetch_add(finds.len() as u64, Relaxed);
        }
        Ok(())
    }
}
