// SPDX-License-Identifier: Apache-2.0
//! The times of all processes of a file: ticks of one machine since one start of it, or
//! nanoseconds of its monotonic clock, each kind by the readings that it stands in.

use super::clock_offsets::ClockOffsets;
use super::tick_conversion::TickConversion;
use crate::format;
use std::collections::{BTreeMap, HashMap};
use tare_clock::{Snapshot, Source};
use tare_log_file::{Boot, Clock, ProcessInfo, Relation};

/// Processes that have this in common have their times in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct ClockDomain {
    boot: Boot,
    /// `None` for ticks; of nanoseconds, how far they are ahead of those in the readings.
    ahead_ns: Option<i64>,
}

impl ClockDomain {
    fn of(info: &ProcessInfo, boot: Boot) -> Self {
        let source = Source::named(info.clock.as_bytes()).unwrap_or_default();
        let ahead_ns = (!source.counts_ticks()).then_some(info.ahead_ns);
        Self { boot, ahead_ns }
    }

    fn times(&self, readings: &[Clock]) -> TickConversion {
        let mut times = match self.ahead_ns {
            None => TickConversion::default(),
            Some(_) => TickConversion::of_nanoseconds(),
        };
        for clock in readings.iter().filter(|clock| clock.boot == self.boot) {
            times.add(self.seen(*clock));
        }
        times
    }

    /// The reading, as a process sees it.
    fn seen(&self, clock: Clock) -> Clock {
        match self.ahead_ns {
            None => clock,
            Some(ahead) => Clock { ticks: clock.monotonic_ns.wrapping_add(ahead) as u64, ..clock },
        }
    }
}

#[derive(Default)]
pub struct ClockDomains {
    readings: Vec<Clock>,
    indices: HashMap<ClockDomain, usize>,
    all: Vec<(ClockDomain, TickConversion)>,
    /// By the index of a process.
    of_process: Vec<usize>,
    relations: Vec<Relation>,
    /// Of each machine that logged, its name.
    hosts: BTreeMap<Boot, String>,
    /// Of each machine that was related to the first, how far its times may be wrong.
    errors: HashMap<Boot, i64>,
}

impl ClockDomains {
    pub fn add(&mut self, clock: Clock) {
        self.readings.push(clock);
        for (domain, times) in self.all.iter_mut().filter(|(domain, _)| domain.boot == clock.boot) {
            times.add(domain.seen(clock));
        }
    }

    /// For the process at the next index. One that says nothing of the machine is taken for one
    /// of the first.
    pub fn add_process(&mut self, info: &ProcessInfo) {
        let first = self.readings.first().map(|clock| clock.boot);
        let is_unknown = info.boot == Boot::default();
        let boot = if is_unknown { first.unwrap_or_default() } else { info.boot };
        self.hosts.entry(boot).or_insert_with(|| info.host.clone());
        let domain = ClockDomain::of(info, boot);
        let next = self.all.len();
        let index = *self.indices.entry(domain).or_insert(next);
        if index == next {
            self.all.push((domain, domain.times(&self.readings)));
        }
        self.of_process.push(index);
    }

    pub fn add_relation(&mut self, relation: Relation) {
        self.relations.push(relation);
    }

    /// Gives all machines the system time of the first, as far as their monotonic clocks are
    /// related to its. Says in words how well, and where they are not.
    pub fn relate(&mut self) -> Vec<String> {
        let Some(first) = self.readings.first().map(|clock| clock.boot) else { return Vec::new() };
        let domain = ClockDomain { boot: first, ahead_ns: Some(0) };
        let times = domain.times(&self.readings);
        let here = self.hosts.get(&first).map(|host| format::plain(host));
        let here = here.unwrap_or_else(|| "the first file's host".to_owned());
        let mut messages = Vec::new();
        for (boot, there) in self.hosts.iter().filter(|(boot, _)| **boot != first) {
            let there = format::plain(there);
            let Some(offsets) = ClockOffsets::of(*boot, first, &self.relations) else {
                // Another start of the same machine has the same system clock; two that run at
                // once are two machines.
                let is_same = there == here;
                if !is_same || self.run_at_once(*boot, first) {
                    let another = if is_same { "another " } else { "" };
                    messages.push(format!(
                        "times of {another}{there} use its own clock, because its difference to \
                         the clock of {here} was not measured; see tare log sync"
                    ));
                }
                continue;
            };
            let mut error = 0;
            for clock in self.readings.iter_mut().filter(|clock| clock.boot == *boot) {
                let (monotonic_ns, error_ns) = offsets.convert(clock.monotonic_ns);
                clock.realtime_ns = times.at(monotonic_ns as u64).unwrap_or(clock.realtime_ns);
                error = error.max(error_ns);
            }
            self.errors.insert(*boot, error);
            let error = format::time(Some(error as f64));
            messages.push(format!(
                "times of {there} are converted to the clock of {here}, to within \
                               {error}"
            ));
        }
        for (domain, times) in &mut self.all {
            *times = domain.times(&self.readings);
        }
        messages
    }

    /// By their own system clocks.
    fn run_at_once(&self, one: Boot, other: Boot) -> bool {
        let [one, other] = [one, other].map(|boot| {
            let its = self.readings.iter().filter(move |clock| clock.boot == boot);
            let times = its.map(|clock| clock.realtime_ns);
            times.clone().min().zip(times.max())
        });
        matches!((one, other), (Some(one), Some(other)) if one.0 <= other.1 && other.0 <= one.1)
    }

    pub fn of(&self, process: usize) -> &TickConversion {
        &self.all[self.of_process[process]].1
    }

    /// Of its machine's times, where it was related to another.
    pub fn error_ns(&self, process: usize) -> Option<i64> {
        self.errors.get(&self.all[self.of_process[process]].0.boot).copied()
    }

    /// Of the first process.
    pub fn readings(&self) -> &[Snapshot] {
        self.all.first().map_or(&[], |(_, times)| times.readings())
    }

    /// Nanoseconds from the first to the last of these moments, each of some process. Within one
    /// timeline, whatever was done to the clock meanwhile.
    pub fn length_ns(&self, ranges: &[Option<(u64, u64)>]) -> Option<i64> {
        let mut joined: BTreeMap<usize, (u64, u64)> = BTreeMap::new();
        for (process, range) in ranges.iter().enumerate() {
            let Some((first, last)) = *range else { continue };
            let known = joined.entry(self.of_process[process]).or_insert((first, last));
            *known = (known.0.min(first), known.1.max(last));
        }
        let joined: Vec<_> =
            joined.into_iter().map(|(index, range)| (&self.all[index].1, range)).collect();
        if let [(times, (first, last))] = joined[..] {
            return times.between(first, last).map(|length| length.round() as i64);
        }
        let begin = joined.iter().filter_map(|(times, (first, _))| times.at(*first)).min()?;
        let end = joined.iter().filter_map(|(times, (_, last))| times.at(*last)).max()?;
        Some(end - begin)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tare_log_file::Moment;

    const ONE: Boot = Boot([1; 16]);
    const OTHER: Boot = Boot([2; 16]);

    fn process(boot: Boot, clock: &str, ahead_ns: i64) -> ProcessInfo {
        ProcessInfo { boot, clock: clock.to_owned(), ahead_ns, ..ProcessInfo::default() }
    }

    /// At 2 GHz, `ticks` after its start at `began_ns`.
    fn reading(boot: Boot, ticks: u64, began_ns: i64) -> Clock {
        let monotonic_ns = ticks as i64 / 2;
        Clock { ticks, monotonic_ns, realtime_ns: began_ns + monotonic_ns, width: 0, boot }
    }

    /// A machine that was started twice, the second time slower in its ticks.
    fn clock_domains(processes: &[ProcessInfo]) -> ClockDomains {
        let mut clock_domains = ClockDomains::default();
        let (before, after) = processes.split_at(processes.len() / 2);
        clock_domains.add(reading(ONE, 1_000, 10_000));
        before.iter().for_each(|info| clock_domains.add_process(info));
        clock_domains.add(reading(OTHER, 100, 70_000));
        clock_domains.add(reading(ONE, 3_000, 10_000));
        clock_domains.add(Clock {
            monotonic_ns: 1_050,
            realtime_ns: 71_050,
            ..reading(OTHER, 1_100, 0)
        });
        after.iter().for_each(|info| clock_domains.add_process(info));
        clock_domains
    }

    #[test]
    fn ticks_of_two_starts_of_a_machine_are_not_mixed() {
        let all = [process(ONE, "tsc", 0), process(OTHER, "tscp", 0), process(OTHER, "tsc", 0)];
        let clock_domains = clock_domains(&all);
        assert_eq!(clock_domains.of(0).at(2_000), Some(11_000));
        assert_eq!(clock_domains.of(1).at(600), Some(70_550));
        assert_eq!(clock_domains.of(2).at(600), Some(70_550));
        assert_eq!(clock_domains.length_ns(&[Some((2_000, 2_600)), None, None]), Some(300));
        let ranges = [Some((2_000, 2_600)), Some((600, 600)), None];
        assert_eq!(clock_domains.length_ns(&ranges), Some(70_550 - 11_000));
    }

    fn related(here: i64, there: i64, error_ns: i64) -> Relation {
        let moment = |boot, monotonic_ns| Moment { boot, monotonic_ns, ..Moment::default() };
        Relation { here: moment(ONE, here), there: moment(OTHER, there), error_ns }
    }

    #[test]
    fn a_related_machine_has_the_times_of_the_first() {
        let here = ProcessInfo { host: "here".to_owned(), ..process(ONE, "tsc", 0) };
        let there = |clock| ProcessInfo { host: "there".to_owned(), ..process(OTHER, clock, 0) };
        let mut clock_domains = clock_domains(&[here, there("tsc"), there("monotonic")]);
        // The other's clock says 50 when this one's says 1000.
        clock_domains.add_relation(related(1_000, 50, 30));
        let messages = clock_domains.relate();
        assert_eq!(
            messages,
            ["times of there are converted to the clock of here, to within 31 ns"]
        );
        assert_eq!(clock_domains.of(0).at(2_000), Some(11_000));
        // 500 ticks are half of its microsecond.
        assert_eq!(clock_domains.of(1).at(600), Some(11_500));
        assert_eq!(clock_domains.of(2).at(550), Some(11_500));
        assert_eq!((clock_domains.error_ns(0), clock_domains.error_ns(1)), (None, Some(31)));
    }

    #[test]
    fn a_machine_that_nothing_relates_keeps_its_times() {
        let there = ProcessInfo { host: "there".to_owned(), ..process(OTHER, "tsc", 0) };
        let mut clock_domains = clock_domains(&[process(ONE, "tsc", 0), there]);
        assert_eq!(clock_domains.relate().len(), 1);
        assert_eq!(clock_domains.of(1).at(600), Some(70_550));
        assert_eq!(clock_domains.error_ns(1), None);
    }

    #[test]
    fn names_of_hosts_are_shown_plainly() {
        let process =
            |boot, host: &str| ProcessInfo { host: host.to_owned(), ..process(boot, "tsc", 0) };
        let both = [process(ONE, "he\x1bre"), process(OTHER, "the\u{202e}re")];
        let mut clock_domains = clock_domains(&both);
        let mut messages = clock_domains.relate();
        clock_domains.add_relation(related(1_000, 50, 30));
        messages.extend(clock_domains.relate());
        assert_eq!(messages.len(), 2);
        for line in messages {
            assert!(line.contains(r"he\u{1b}re") && line.contains(r"the\u{202e}re"), "{line}");
        }
    }

    #[test]
    fn two_machines_of_one_name_are_told_from_one_that_was_started_twice() {
        for (began_ns, is_reported) in [(10_000, true), (70_000, false)] {
            let mut clock_domains = ClockDomains::default();
            for (boot, began_ns) in [(ONE, 10_000), (OTHER, began_ns)] {
                clock_domains.add(reading(boot, 1_000, began_ns));
                clock_domains.add(reading(boot, 3_000, began_ns));
                let host = "localhost".to_owned();
                clock_domains.add_process(&ProcessInfo { host, ..process(boot, "tsc", 0) });
            }
            let messages = clock_domains.relate();
            assert_eq!(!messages.is_empty(), is_reported);
            assert!(messages.iter().all(|line| line.starts_with("times of another localhost use")));
        }
    }

    #[test]
    fn nanoseconds_are_those_of_the_programs_time_namespace() {
        let all = [process(ONE, "monotonic", 0), process(ONE, "fallback", 5_000_000)];
        let clock_domains = clock_domains(&all);
        assert_eq!(clock_domains.of(0).at(1_200), Some(11_200));
        assert_eq!(clock_domains.of(1).at(5_001_200), Some(11_200));
        assert_eq!(clock_domains.of(1).between(5_001_200, 5_001_000), Some(-200.0));
    }

    #[test]
    fn a_process_of_an_unknown_machine_is_one_of_the_first() {
        let clock_domains =
            clock_domains(&[process(Boot::default(), "", 0), ProcessInfo::default()]);
        assert_eq!(clock_domains.of(0).at(2_000), Some(11_000));
        assert_eq!(clock_domains.of(1).at(2_000), Some(11_000));
    }
}
