// SPDX-License-Identifier: Apache-2.0
//! Which channels begin and end spans (docs/decisions/0103-a-span-is-two-channels.md).

use super::patterns::SpanPattern;
use crate::format::plain;
use crate::reader::log::Log;
use std::collections::{BTreeSet, HashMap};
use tare_command::say;
use tare_log_segment::ChannelId;

/// What is a pair without being named: scopes of the language bindings, and the names that
/// MooBench and users of Cloudprofiler have.
const USUAL: &[&str] = &["*>=*<", "* tin=* tout", "* in=* out", "* begin=* end", "* start=* stop"];

/// Handlers that keep some events of a channel only: which end belongs to a beginning that is
/// there, nothing says.
const KEEP_SOME: &[&str] =
    &["downsample", "x-of-y", "first-last", "median", "periodic-counter", "fast-periodic-counter"];

/// It writes events while those of all others go through a ring: the two are not in order.
const WRITTEN: &str = "id";

/// Pairs that are named where several are none.
const NAMED: usize = 5;

/// Of a channel that is part of a pair: which end of which span.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    Begin(usize),
    End(usize),
}

/// The channels of a file that begin and end spans.
#[derive(Debug, Default)]
pub struct Roles {
    names: Vec<String>,
    roles: HashMap<(usize, ChannelId), Role>,
}

impl Roles {
    /// By the pairs that are named, then the usual ones. Two channels are a pair only where one
    /// process has both: `check in` alone begins nothing.
    pub fn of(log: &Log, named: &[SpanPattern]) -> Self {
        let channels: Vec<_> = log
            .channels()
            .map(|(process, channel)| (process, channel.id, &*channel.name))
            .collect();
        for SpanPattern { begin, end } in named.iter().filter(|pair| !pair.is_among(&channels)) {
            say(format_args!("--pair {begin}={end}: no process has opened two such channels"));
        }
        let (all, unfit) = Self::among(channels, named, |process, ends| unfit(log, process, ends));
        if !unfit.is_empty() {
            let more = unfit.len().saturating_sub(NAMED);
            let more = if more > 0 { format!(", and {more} more") } else { String::new() };
            let some: Vec<_> = unfit.into_iter().take(NAMED).collect();
            say(format_args!(
                "no spans of {}{more}: these handlers omit or reorder events, and spans need all \
                 events in order",
                plain(&some.join(", "))
            ));
        }
        all
    }

    /// With the pairs that are none, by what `unfit` says of two channels of a process.
    fn among(
        mut channels: Vec<(usize, ChannelId, &str)>,
        named: &[SpanPattern],
        unfit: impl Fn(usize, [ChannelId; 2]) -> Option<String>,
    ) -> (Self, BTreeSet<String>) {
        channels.sort_unstable();
        let mut all = Self::default();
        let mut none = BTreeSet::new();
        let mut indices: HashMap<String, usize> = HashMap::new();
        let usual = USUAL.iter().filter_map(|pair| pair.parse().ok());
        for pair in named.iter().cloned().chain(usual) {
            let ends: HashMap<(usize, &str), (ChannelId, &str)> = channels
                .iter()
                .filter_map(|(process, id, name)| {
                    Some(((*process, pair.end.part(name)?), (*id, *name)))
                })
                .collect();
            for (process, begin, begins) in &channels {
                let Some(part) = pair.begin.part(begins) else { continue };
                let Some((end, ends)) = ends.get(&(*process, part)) else { continue };
                if let Some(why) = unfit(*process, [*begin, *end]) {
                    none.insert(format!("{begins} and {ends} ({why})"));
                    continue;
                }
                let (begin, end) = ((*process, *begin), (*process, *end));
                if all.roles.contains_key(&begin) || all.roles.contains_key(&end) || begin == end {
                    continue;
                }
                let name = pair.name(part);
                let index = *indices.entry(name.clone()).or_insert(all.names.len());
                if index == all.names.len() {
                    all.names.push(name);
                }
                all.roles.insert(begin, Role::Begin(index));
                all.roles.insert(end, Role::End(index));
            }
        }
        (all, none)
    }

    pub fn get(&self, process: usize, channel: ChannelId) -> Option<Role> {
        self.roles.get(&(process, channel)).copied()
    }

    /// The names of spans, of all processes together.
    pub fn names(&self) -> &[String] {
        &self.names
    }
}

/// Why two channels are no pair, by the handlers they have had.
fn unfit(log: &Log, process: usize, ends: [ChannelId; 2]) -> Option<String> {
    let handlers = ends.map(|id| log.handlers(process, id).collect::<BTreeSet<_>>());
    let is_mixed = handlers[0].contains(WRITTEN) != handlers[1].contains(WRITTEN);
    let all: BTreeSet<_> = handlers.into_iter().flatten().collect();
    let why = all
        .into_iter()
        .filter(|reason| KEEP_SOME.contains(reason) || is_mixed && *reason == WRITTEN);
    let why: Vec<_> = why.collect();
    (!why.is_empty()).then(|| why.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair(text: &str) -> SpanPattern {
        text.parse().unwrap()
    }

    #[test]
    fn usual_names_are_pairs_where_a_process_has_both() {
        let channels = [
            (0, 1, "parse>"),
            (0, 2, "parse<"),
            (0, 3, "Simple  tin"),
            (0, 4, "Simple  tout"),
            (0, 5, "check in"),
            (1, 5, "check out"),
            (1, 6, "parse<"),
            (1, 7, "parse>"),
        ];
        let (roles, _) = Roles::among(channels.to_vec(), &[], |_, _| None);
        assert_eq!(roles.names(), ["parse", "Simple"]);
        let of = |process, id| roles.get(process, id);
        assert_eq!((of(0, 1), of(0, 2)), (Some(Role::Begin(0)), Some(Role::End(0))));
        assert_eq!((of(1, 7), of(1, 6)), (Some(Role::Begin(0)), Some(Role::End(0))));
        assert_eq!((of(0, 3), of(0, 4)), (Some(Role::Begin(1)), Some(Role::End(1))));
        assert_eq!((of(0, 5), of(1, 5)), (None, None));
    }

    #[test]
    fn named_pairs_come_first() {
        let channels = [(0, 1, "a>"), (0, 2, "a<"), (0, 3, "done a"), (0, 4, "go")];
        let named = [pair("*>=done *"), pair("go=a<")];
        let (roles, _) = Roles::among(channels.to_vec(), &named, |_, _| None);
        assert_eq!(roles.names(), ["a", "go"]);
        assert_eq!(roles.get(0, 1), Some(Role::Begin(0)));
        assert_eq!(roles.get(0, 3), Some(Role::End(0)));
        assert_eq!(roles.get(0, 4), Some(Role::Begin(1)));
        assert_eq!(roles.get(0, 2), Some(Role::End(1)));
    }

    #[test]
    fn what_does_not_fit_is_told_and_no_pair() {
        let channels = [(0, 1, "a>"), (0, 2, "a<"), (1, 1, "a>"), (1, 2, "a<"), (0, 3, "b<")];
        let why = |process, ends| (process == 0 && ends == [1, 2]).then(|| "median".to_owned());
        let (roles, none) = Roles::among(channels.to_vec(), &[pair("a>=b<")], why);
        assert_eq!(none.into_iter().collect::<Vec<_>>(), ["a> and a< (median)"]);
        assert_eq!((roles.get(0, 1), roles.get(0, 2)), (Some(Role::Begin(0)), None));
        assert_eq!(roles.get(1, 2), Some(Role::End(1)));
    }

    #[test]
    fn what_is_no_pair_is_refused() {
        for text in ["", "a", "=a", "a=", "a=a", "*=b", "a=*b"] {
            assert!(text.parse::<SpanPattern>().is_err(), "{text}");
        }
    }
}
