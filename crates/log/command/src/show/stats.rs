// SPDX-License-Identifier: Apache-2.0
//! What a file says in numbers: how long spans took, how often channels logged, what was lost.

use super::call_tree::CallTree;
use super::flame_graph;
use super::span_times::{MOST_PAGES, Page, Times};
use crate::arguments;
use crate::format;
use crate::reader::log::{Ended, Log, Row, What, names};
use crate::reader::process_end::ProcessEnd;
use crate::reader::spans::roles::{Role, Roles};
use crate::reader::spans::{SpanEvent, for_each_span_event};
use crate::same_file::must_not_be;
use serde_json::{Value as Json, json};
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fmt::Write as _;
use std::io::{BufWriter, Write};
use std::process::ExitCode;
use tare_clock::Source;
use tare_command::{Failure, NewFile, ResultExt};
use tare_log_file::How;

const QUANTILES: [(&str, &str, f64); 4] = [
    ("p50", "p50_ns", 0.5),
    ("p90", "p90_ns", 0.9),
    ("p99", "p99_ns", 0.99),
    ("p99.9", "p999_ns", 0.999),
];

struct Stats<'log> {
    log: &'log Log,
    roles: &'log Roles,
    spans: Vec<Times>,
    /// Pages of them that are left.
    pages: usize,
    call_tree: CallTree,
    /// Events by channel, those of spans included.
    channels: BTreeMap<String, u64>,
    threads: HashSet<(usize, u32)>,
    events: u64,
    /// Round trips without an answer included.
    lost: u64,
}

pub fn stats(arguments: &arguments::Stats) -> Result<ExitCode, Failure> {
    let flame = arguments.flame.as_ref().map(|out| (out, format!("--flame {}", out.display())));
    if let Some((out, what)) = &flame {
        must_not_be(&arguments.files, out, what)?;
    }
    let log = Log::open(&arguments.files)?;
    let roles = Roles::of(&log, &arguments.pairs);
    let mut stats = Stats {
        log: &log,
        roles: &roles,
        spans: roles.names().iter().map(|_| Times::default()).collect(),
        pages: MOST_PAGES,
        call_tree: CallTree::new(roles.names()),
        channels: BTreeMap::new(),
        threads: HashSet::new(),
        events: 0,
        lost: log.process_ends().unanswered(),
    };
    let visited = for_each_span_event(&log, &roles, |row, span_event| {
        if stats.add(row, span_event) { Ok(()) } else { Err(()) }
    });
    visited.map_err(|ended| match ended {
        Ended::Failed(failure) => failure,
        Ended::Enough(()) => Failure::input(format_args!(
            "{}: durations of {} names of spans need more than {} MiB; export the events with tare \
             log export instead",
            names(&arguments.files),
            roles.names().len(),
            (MOST_PAGES * size_of::<Page>()) >> 20
        )),
    })?;
    if let Some((out, what)) = &flame {
        let new = NewFile::create(out).or_input(what)?;
        let mut file = BufWriter::new(new.file().or_failed(what)?);
        let title = format!("tare log: {}", names(&arguments.files));
        flame_graph::write(&stats.call_tree, &title, &mut file).or_failed(what)?;
        file.flush().and_then(|()| new.finish()).or_failed(what)?;
    }
    if arguments.json {
        tare_command::print_json(stats.json())?;
    } else {
        tare_command::print(stats.text())?;
    }
    Ok(ExitCode::SUCCESS)
}

impl Stats<'_> {
    /// Whether there was room for it.
    fn add(&mut self, row: &Row<'_>, span_event: SpanEvent<'_>) -> bool {
        match (span_event, row.what) {
            (SpanEvent::Begin(open), _) => self.call_tree.begin(row, open),
            (SpanEvent::End(open, duration), _) => {
                let duration = duration.map(|duration| duration.max(0.0));
                self.call_tree.end(open, duration);
                if let Some(duration) = duration {
                    let new = self.spans[open.name].add(duration);
                    if new > self.pages {
                        return false;
                    }
                    self.pages -= new;
                }
            }
            (SpanEvent::Cut(open) | SpanEvent::Left(open), _) => {
                self.call_tree.end(open, None);
                self.spans[open.name].unpaired += 1;
            }
            (SpanEvent::Unbegun, What::Event { id, .. }) => {
                if let Some(Role::End(name)) = self.roles.get(row.process, id) {
                    self.spans[name].unpaired += 1;
                }
            }
            _ => {}
        }
        // Not of rows of their own.
        if matches!(span_event, SpanEvent::Cut(_) | SpanEvent::Left(_)) {
            return true;
        }
        self.threads.insert((row.process, row.tid));
        match row.what {
            What::Loss { lost, .. } => self.lost = self.lost.saturating_add(lost),
            What::Gap { .. } => {}
            What::Event { channel, .. } => {
                self.events += 1;
                match self.channels.get_mut(channel) {
                    Some(count) => *count += 1,
                    None => {
                        self.channels.insert(channel.to_owned(), 1);
                    }
                }
            }
        }
        true
    }

    /// What times were read from, each once.
    fn clocks(&self) -> Vec<&str> {
        let all: BTreeSet<_> =
            self.log.processes().iter().map(|info| info.clock.as_str()).collect();
        all.into_iter().filter(|clock| !clock.is_empty()).collect()
    }

    fn seconds(&self) -> Option<f64> {
        self.log.length_ns().map(|length| length as f64 / 1e9)
    }

    /// A second; `None` where no time passed.
    fn rate(&self, events: u64) -> Option<f64> {
        self.seconds().filter(|seconds| *seconds > 0.0).map(|seconds| events as f64 / seconds)
    }

    /// Spans, those that took most time themselves first.
    fn by_time(&self) -> Vec<(&str, &Times, f64)> {
        let names = self.roles.names().iter().map(String::as_str);
        let mut all: Vec<_> = names
            .zip(&self.spans)
            .zip(&self.call_tree.own)
            .map(|((name, times), own)| (name, times, *own))
            .collect();
        all.retain(|(_, times, _)| times.count + times.unpaired > 0);
        all.sort_by(|first, second| second.2.total_cmp(&first.2).then(first.0.cmp(second.0)));
        all
    }

    /// The channels, those with a loss included.
    fn all_channels(&self) -> BTreeMap<&str, (u64, u64)> {
        let mut all: BTreeMap<&str, (u64, u64)> =
            self.channels.iter().map(|(name, events)| (name.as_str(), (*events, 0))).collect();
        for (process, id, lost) in self.log.process_ends().lost() {
            let name = self.log.name(process, id);
            let sum = &mut all.entry(name).or_default().1;
            *sum = sum.saturating_add(lost);
        }
        all
    }

    /// Each process, and how it left.
    fn ends(&self) -> Json {
        let all = self.log.processes().iter().zip(&self.log.process_ends().0);
        all.map(|(info, ProcessEnd { how, unserved, deferred, .. })| {
            json!({
                "pid": info.pid, "host": info.host, "command": info.command, "how": how,
                "unserved": unserved, "deferred": deferred,
            })
        })
        .collect()
    }

    /// What became of processes and events.
    fn outcome(&self) -> String {
        let mut ways = BTreeMap::new();
        for end in &self.log.process_ends().0 {
            let way = match end.how {
                None => "without an end in the file",
                Some(How::Finished) => "finished",
                Some(How::Ended) => "ended without a final record",
                Some(How::Left) => "released by the collector",
                Some(How::Recovered) => "recovered",
            };
            *ways.entry(way).or_default() += 1;
        }
        let ways: Vec<_> =
            ways.iter().map(|(way, count): (_, &u64)| format!("{count} {way}")).collect();
        let mut text = String::new();
        if !ways.is_empty() {
            let _ = writeln!(text, "processes: {}", ways.join(", "));
        }
        let counts = [
            (
                self.log.process_ends().unserved(),
                "events unserved: no ring was free for their \
                                              threads",
            ),
            (
                self.log.process_ends().deferred(),
                "events deferred: the program did not write them itself",
            ),
            (
                self.log.process_ends().unanswered(),
                "of the lost events are round trips without an answer",
            ),
        ];
        for (count, what) in counts.iter().filter(|(count, _)| *count > 0) {
            let _ = writeln!(text, "{count} {what}");
        }
        text
    }

    fn json(&self) -> Json {
        let spans: Vec<Json> = self
            .by_time()
            .into_iter()
            .map(|(name, times, own)| {
                let some = |value: u64| (times.count > 0).then_some(value);
                let mut span = json!({
                    "span": name,
                    "count": times.count,
                    "unpaired": times.unpaired,
                    "total_ns": times.total.round() as u64,
                    "own_ns": own.round() as u64,
                    "mean_ns": times.mean(),
                    "min_ns": some(times.least),
                    "max_ns": some(times.greatest),
                });
                for (_, key, share) in QUANTILES {
                    span[key] = times.quantile(share).into();
                }
                span
            })
            .collect();
        let channels: Vec<Json> = self
            .all_channels()
            .into_iter()
            .map(|(name, (events, lost))| {
                let rate = self.rate(events);
                json!({"channel": name, "events": events, "events_per_second": rate, "lost": lost})
            })
            .collect();
        json!({
            "seconds": self.seconds(),
            "processes": self.log.processes().len(),
            "ends": self.ends(),
            "clocks": self.clocks(),
            "threads": self.threads.len(),
            "events": self.events,
            "lost": self.lost,
            "unanswered": self.log.process_ends().unanswered(),
            "unserved": self.log.process_ends().unserved(),
            "deferred": self.log.process_ends().deferred(),
            "is_cut": self.call_tree.is_cut,
            "spans": spans,
            "channels": channels,
        })
    }

    fn text(&self) -> String {
        let rate = |events| self.rate(events).map_or_else(|| "-".to_owned(), format::count);
        let mut text = format!(
            "{} events in {}, {} per second; {} lost; {}, {}\n",
            self.events,
            format::time(self.seconds().map(|seconds| seconds * 1e9)),
            rate(self.events),
            self.lost,
            format::counted(self.log.processes().len(), "process", "processes"),
            format::counted(self.threads.len(), "thread", "threads"),
        );
        text.push_str(&self.outcome());
        let clocks = self.clocks();
        if !clocks.is_empty() {
            let _ = writeln!(text, "times by {}", format::plain(&clocks.join(", ")));
        }
        if clocks.contains(&Source::Fallback.name()) {
            text.push_str(
                "fallback: clock_gettime, because a host has no reliable tick \
                           counter\n",
            );
        }
        let spans = self.by_time();
        if !spans.is_empty() {
            let head = ["span", "count", "own", "total", "mean", "min"].into_iter();
            let quantiles = QUANTILES.iter().map(|(name, ..)| *name);
            let mut rows =
                vec![head.chain(quantiles).chain(["max"]).map(str::to_owned).collect::<Vec<_>>()];
            for (name, times, own) in &spans {
                let some = |value| format::time((times.count > 0).then_some(value));
                let mut row = vec![name.to_string(), times.count.to_string()];
                row.extend([*own, times.total].map(some));
                row.extend([format::time(times.mean()), some(times.least as f64)]);
                row.extend(QUANTILES.iter().map(|(.., share)| {
                    format::time(times.quantile(*share).map(|value| value as f64))
                }));
                row.push(some(times.greatest as f64));
                rows.push(row);
            }
            let _ = write!(text, "\n{}", format::align(&rows));
            for (name, times, _) in spans.iter().filter(|(_, times, _)| times.unpaired > 0) {
                let name = format::plain(name);
                let _ = writeln!(text, "{name}: {} without a begin or an end", times.unpaired);
            }
        }
        let mut rows =
            vec![["channel", "events", "per second", "lost"].map(str::to_owned).to_vec()];
        for (name, (events, lost)) in self.all_channels() {
            rows.push(vec![name.to_owned(), events.to_string(), rate(events), lost.to_string()]);
        }
        let _ = write!(text, "\n{}", format::align(&rows));
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reader::owned_payload::OwnedPayload;
    use crate::reader::spans::{Id, Open};

    #[test]
    fn durations_that_have_no_room_are_refused() {
        let log = Log::nothing(&[]);
        let roles = Roles::of(&log, &[]);
        let mut stats = Stats {
            log: &log,
            roles: &roles,
            spans: vec![Times::default()],
            pages: 2,
            call_tree: CallTree::new(&["a".to_owned()]),
            channels: BTreeMap::new(),
            threads: HashSet::new(),
            events: 0,
            lost: 0,
        };
        let id = Id { process: 0, ring: 0, ticks: 0, nth: 0 };
        let value = OwnedPayload::Number(0);
        let open = Open { id, parent: None, root: id, name: 0, time_ns: None, value };
        let row = Row::of_thread("", What::Gap { last: 0 });
        let mut add = |duration| stats.add(&row, SpanEvent::End(&open, Some(duration)));
        assert_eq!([1e3, 1e9, 1e9, 1e18].map(&mut add), [true, true, true, false]);
    }
}
