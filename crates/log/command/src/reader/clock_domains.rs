// SPDX-License-Identifier: Apache-2.0
//! The times of all processes of a file: ticks of one machine since one start of it, or
//! nanoseconds of its monotonic clock, each kind by the readings that it stands in.

use super::clock_offsets::ClockOffsets;
use super::tick_conversion::TickConversion;
use crate::format;
use std::collections::{BTreeMap, HashMap};
use tare_clock::{Snapshot, Source};
use tare_log_file::{Boot, Clock, ProcessInfo, Relation};

/// Since one start of it.
struct Machine {
    boot: Boot,
    /// `None` if no process of it logged.
    host: Option<String>,
    /// Readings that its times do not follow yet.
    unused: Vec<Clock>,
    by_ticks: TickConversion,
    by_nanoseconds: TickConversion,
    relations: Vec<Relation>,
    /// If it was related to the first, how far its times may be wrong.
    error_ns: Option<i64>,
}

impl Machine {
    fn new(boot: Boot) -> Self {
        Self {
            boot,
            host: None,
            unused: Vec::new(),
            by_ticks: TickConversion::default(),
            by_nanoseconds: TickConversion::of_nanoseconds(),
            relations: Vec::new(),
            error_ns: None,
        }
    }

    fn use_readings(&mut self) {
        let readings = std::mem::take(&mut self.unused).into_iter().map(
            |Clock { ticks, monotonic_ns, realtime_ns, width, .. }| Snapshot {
                ticks,
                monotonic_ns,
                realtime_ns,
                width,
            },
        );
        let readings: Vec<_> = readings.collect();
        self.by_nanoseconds.extend(
            readings
                .iter()
                .map(|reading| Snapshot { ticks: reading.monotonic_ns as u64, ..*reading }),
        );
        self.by_ticks.extend(readings);
    }

    /// Of its system clock, in the readings.
    fn first_and_last_ns(&self) -> Option<(i64, i64)> {
        let times = self.by_ticks.readings().iter().map(|reading| reading.realtime_ns);
        times.clone().min().zip(times.max())
    }
}

/// Processes that have this in common have their times in common.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct ClockDomain {
    /// Its index.
    machine: usize,
    /// `None` for ticks; of nanoseconds, how far they are ahead of those in the readings.
    ahead_ns: Option<i64>,
}

/// The times of a process.
#[derive(Clone, Copy)]
pub struct Times<'log> {
    readings: &'log TickConversion,
    ahead_ns: i64,
}

impl Times<'_> {
    /// As [`TickConversion::at`].
    pub fn at(&self, ticks: u64) -> Option<i64> {
        self.readings.at(ticks.wrapping_sub(self.ahead_ns as u64))
    }

    /// As [`TickConversion::between`].
    pub fn between(&self, first: u64, last: u64) -> Option<f64> {
        self.readings.between(first, last)
    }
}

#[derive(Default)]
pub struct ClockDomains {
    machines: Vec<Machine>,
    indices: HashMap<Boot, usize>,
    /// The index of the machine of the first reading.
    first: Option<usize>,
    /// Indices of machines with readings that times do not follow yet.
    changed: Vec<usize>,
    /// By the index of a process.
    of_process: Vec<ClockDomain>,
}

impl ClockDomains {
    fn machine(&mut self, boot: Boot) -> usize {
        *self.indices.entry(boot).or_insert_with(|| {
            self.machines.push(Machine::new(boot));
            self.machines.len() - 1
        })
    }

    /// Times follow the reading after `update`.
    pub fn add(&mut self, clock: Clock) {
        let index = self.machine(clock.boot);
        self.first.get_or_insert(index);
        if self.machines[index].unused.is_empty() {
            self.changed.push(index);
        }
        self.machines[index].unused.push(clock);
    }

    pub fn update(&mut self) {
        for index in self.changed.drain(..) {
            self.machines[index].use_readings();
        }
    }

    /// For the process at the next index. One that says nothing of the machine is taken for one
    /// of the first.
    pub fn add_process(&mut self, info: &ProcessInfo) {
        let is_unknown = info.boot == Boot::default();
        let first = self.first.filter(|_| is_unknown);
        let machine = first.unwrap_or_else(|| self.machine(info.boot));
        self.machines[machine].host.get_or_insert_with(|| info.host.clone());
        let source = Source::named(info.clock.as_bytes()).unwrap_or_default();
        let ahead_ns = (!source.counts_ticks()).then_some(info.ahead_ns);
        self.of_process.push(ClockDomain { machine, ahead_ns });
    }

    pub fn add_relation(&mut self, relation: Relation) {
        for moment in [&relation.here, &relation.there] {
            let index = self.machine(moment.boot);
            self.machines[index].relations.push(relation.clone());
        }
    }

    /// Gives all machines the system time of the first, as far as their monotonic clocks are
    /// related to its. Says in words how well, and where they are not.
    pub fn relate(&mut self) -> Vec<String> {
        self.update();
        let Some(first) = self.first else { return Vec::new() };
        let here = self.machines[first].host.as_deref().map(format::plain);
        let here = here.unwrap_or_else(|| "the first file's host".to_owned());
        let mut messages = Vec::new();
        for index in (0..self.machines.len()).filter(|index| *index != first) {
            let Ok([first, machine]) = self.machines.get_disjoint_mut([first, index]) else {
                continue;
            };
            let Some(there) = machine.host.as_deref().map(format::plain) else { continue };
            let Some(offsets) = ClockOffsets::of(machine.boot, first.boot, &machine.relations)
            else {
                // Another start of the same machine has the same system clock; two that run at
                // once are two machines.
                let is_same = there == here;
                if !is_same || run_at_once(machine, first) {
                    let another = if is_same { "another " } else { "" };
                    messages.push(format!(
                        "times of {another}{there} use its own clock, because its difference to \
                         the clock of {here} was not measured; see tare log sync"
                    ));
                }
                continue;
            };
            let mut error = 0;
            for times in [&mut machine.by_ticks, &mut machine.by_nanoseconds] {
                times.set_system_times(|monotonic_ns| {
                    let (monotonic_ns, error_ns) = offsets.convert(monotonic_ns);
                    error = error.max(error_ns);
                    first.by_nanoseconds.at(monotonic_ns as u64)
                });
            }
            machine.error_ns = Some(error);
            let error = format::time(Some(error as f64));
            messages.push(format!(
                "times of {there} are converted to the clock of {here}, to within {error}"
            ));
        }
        messages
    }

    pub fn of(&self, process: usize) -> Times<'_> {
        self.times(self.of_process[process])
    }

    fn times(&self, domain: ClockDomain) -> Times<'_> {
        let machine = &self.machines[domain.machine];
        match domain.ahead_ns {
            None => Times { readings: &machine.by_ticks, ahead_ns: 0 },
            Some(ahead_ns) => Times { readings: &machine.by_nanoseconds, ahead_ns },
        }
    }

    /// Of its machine's times, where it was related to another.
    pub fn error_ns(&self, process: usize) -> Option<i64> {
        self.machines[self.of_process[process].machine].error_ns
    }

    /// Of the first process.
    pub fn readings(&self) -> &[Snapshot] {
        let first = self.of_process.first();
        first.map_or(&[], |domain| self.times(*domain).readings.readings())
    }

    /// Nanoseconds from the first to the last of these moments, each of some process. Within one
    /// timeline, whatever was done to the clock meanwhile.
    pub fn length_ns(&self, ranges: &[Option<(u64, u64)>]) -> Option<i64> {
        let mut joined: BTreeMap<ClockDomain, (u64, u64)> = BTreeMap::new();
        for (process, range) in ranges.iter().enumerate() {
            let Some((first, last)) = *range else { continue };
            let known = joined.entry(self.of_process[process]).or_insert((first, last));
            *known = (known.0.min(first), known.1.max(last));
        }
        let joined: Vec<_> =
            joined.into_iter().map(|(domain, range)| (self.times(domain), range)).collect();
        if let [(times, (first, last))] = joined[..] {
            return times.between(first, last).map(|length| length.round() as i64);
        }
        let begin = joined.iter().filter_map(|(times, (first, _))| times.at(*first)).min()?;
        let end = joined.iter().filter_map(|(times, (_, last))| times.at(*last)).max()?;
        Some(end.saturating_sub(begin))
    }
}

/// By their own system clocks.
fn run_at_once(first: &Machine, second: &Machine) -> bool {
    let ranges = first.first_and_last_ns().zip(second.first_and_last_ns());
    ranges.is_some_and(|(first, second)| first.0 <= second.1 && second.0 <= first.1)
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
        clock_domains.update();
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
