// SPDX-License-Identifier: Apache-2.0
use std::collections::BTreeMap;
use std::io;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use tare_clock::Rate;
use tare_hook_segment::{Counters, LARGEST_OWN_TIME, Shared, Symbol, Unseen};
use tare_tables::{COSTS, Cell, Vacant};

/// The columns of the table `costs` that are written.
pub const COLUMNS: &[&str] = &["layer", "function", "metric", "low_ns", "high_ns", "count"];

/// What the hook counted up to now, summed over all processes and threads.
pub struct Costs {
    /// The functions that were called.
    pub functions: Vec<Function>,
    pub unseen: Vec<(&'static str, u64)>,
    /// Programs that loaded the library.
    pub attached: u64,
}

pub struct Function {
    pub name: &'static str,
    pub counters: Vec<(&'static str, u64)>,
    /// The histogram of the hook's own time, in ticks.
    pub own_time: Vec<u64>,
}

type Field = fn(&Counters) -> &AtomicU64;

const COUNTERS: [(&str, Field); 6] = [
    ("calls_socket", |counters| &counters.calls_socket),
    ("calls_other", |counters| &counters.calls_other),
    ("bytes_searched", |counters| &counters.bytes_searched),
    ("bytes_unseen", |counters| &counters.bytes_unseen),
    ("matches", |counters| &counters.matches),
    ("blocked", |counters| &counters.blocked),
];

impl Costs {
    pub fn read(shared: &Shared) -> Self {
        let functions = Symbol::ALL.iter().filter_map(|symbol| Function::read(shared, *symbol));
        let unseen = Unseen::ALL.iter().enumerate().map(|(place, unseen)| {
            (
                unseen.name(),
                sum(shared
                    .statistics
                    .iter()
                    .map(|statistics| statistics.unseen[place].load(Relaxed))),
            )
        });
        Self {
            functions: functions.collect(),
            unseen: unseen.collect(),
            attached: shared.attached.load(Relaxed),
        }
    }

    /// Writes everything as one Arrow stream.
    pub fn write(&self, file: Vacant, rate: Rate, events_lost: u64) -> io::Result<()> {
        let mut writer = file.begin(&COSTS, COLUMNS)?;
        for function in &self.functions {
            let name = Cell::Text(function.name);
            for (metric, count) in &function.counters {
                writer.row(&row(name, metric, None, *count))?;
            }
            for (bounds, count) in function.bins(rate) {
                writer.row(&row(name, "own_time", Some(bounds), count))?;
            }
        }
        let attached = ("programs_attached", self.attached);
        let lost = ("events_lost", events_lost);
        for (metric, count) in self.unseen.iter().chain(&[attached, lost]) {
            writer.row(&row(Cell::Null, metric, None, *count))?;
        }
        writer.finish()
    }
}

fn row<'t>(
    function: Cell<'t>,
    metric: &'t str,
    bounds: Option<(u64, u64)>,
    count: u64,
) -> [Cell<'t>; COLUMNS.len()] {
    let (low, high) = match bounds {
        Some((low, high)) => (integer(low), integer(high)),
        None => (Cell::Null, Cell::Null),
    };
    [Cell::Text("hook"), function, Cell::Text(metric), low, high, integer(count)]
}

fn integer(value: u64) -> Cell<'static> {
    Cell::Int(i64::try_from(value).unwrap_or(i64::MAX))
}

/// Of counts that the program may have changed.
pub fn sum(counts: impl Iterator<Item = u64>) -> u64 {
    counts.fold(0, u64::saturating_add)
}

impl Function {
    /// `None` if it was never called.
    fn read(shared: &Shared, symbol: Symbol) -> Option<Self> {
        let place = symbol as usize;
        let mut counters = COUNTERS.map(|(name, field)| {
            let shards = shared.statistics.iter();
            (name, sum(shards.map(|shard| field(&shard.counters[place]).load(Relaxed))))
        });
        if counters.iter().all(|(_, count)| *count == 0) {
            return None;
        }
        let mut own_time = vec![0; tare_hist::bins(LARGEST_OWN_TIME)];
        for shard in &shared.statistics {
            // A histogram that nothing was counted in has no memory, and gets none.
            if shard.counters[place].calls_socket.load(Relaxed) > 0 {
                tare_hist::add_into(&mut own_time, &shard.own_time[place]);
            }
        }
        // Calls that are timed are counted by their times alone.
        let timed = sum(own_time.iter().copied());
        if timed > 0 {
            let [(_, calls_socket), ..] = &mut counters;
            *calls_socket = timed;
        }
        Some(Self { name: symbol.name(), counters: counters.to_vec(), own_time })
    }

    pub fn counter(&self, name: &str) -> u64 {
        self.counters.iter().find(|(known, _)| *known == name).map_or(0, |(_, count)| *count)
    }

    /// The hook's own time in ns that `quantile` of the calls did not exceed.
    pub fn own_time(&self, quantile: f64, rate: Rate) -> Option<u64> {
        let bin = tare_hist::quantile(&self.own_time, quantile)?;
        Some(rate.nanoseconds(tare_hist::middle(bin)))
    }

    /// Bins in ns (least and greatest value) with their counts; a nanosecond is several
    /// ticks, so that the lowest bins fall together.
    fn bins(&self, rate: Rate) -> BTreeMap<(u64, u64), u64> {
        let mut bins = BTreeMap::new();
        for (bin, count) in self.own_time.iter().enumerate().filter(|(_, count)| **count > 0) {
            let (low, high) = tare_hist::bounds(bin);
            let bin: &mut u64 =
                bins.entry((rate.nanoseconds(low), rate.nanoseconds(high))).or_default();
            *bin = bin.saturating_add(*count);
        }
        bins
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::segments::Segments;
    use tare_clock::Snapshot;

    fn two_gigahertz() -> Rate {
        let first = Snapshot { ticks: 0, monotonic_ns: 0, realtime_ns: 0, width: 0 };
        Rate::between(&first, &Snapshot { ticks: 2_000, monotonic_ns: 1_000, ..first }).unwrap()
    }

    #[test]
    fn shards_are_summed_and_ticks_become_nanoseconds() {
        let shared = Segments::create().unwrap().0.shared;
        let place = Symbol::read as usize;
        for (shard, times) in shared.statistics.iter().zip([[101, 102], [103, 4_000]]) {
            shard.counters[place].calls_socket.store(1, Relaxed);
            times.iter().for_each(|time| tare_hist::record(&shard.own_time[place], *time));
        }
        shared.statistics[3].unseen[Unseen::Stdio as usize].store(5, Relaxed);
        let costs = Costs::read(shared);
        let [read] = costs.functions.as_slice() else { panic!("one function was called") };
        assert_eq!((read.name, read.counter("calls_socket")), ("read", 4));
        assert_eq!(read.own_time(0.5, two_gigahertz()), Some(51));
        let bins: Vec<_> = read.bins(two_gigahertz()).into_iter().collect();
        assert_eq!(bins[..2], [((51, 51), 2), ((52, 52), 1)]);
        assert!(bins[2].0.0 <= 2_000 && 2_000 <= bins[2].0.1);
        assert_eq!(costs.unseen[0], ("stdio_sockets", 5));
    }
}
