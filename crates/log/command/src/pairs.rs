// SPDX-License-Identifier: Apache-2.0
//! Which channels begin and end spans (docs/decisions/0103-a-span-is-two-channels.md).

use crate::log::Log;
use std::collections::HashMap;
use std::str::FromStr;
use tare_log_segment::ChannelId;

/// What is a pair without being named: scopes of the language bindings, and the names that
/// MooBench and users of Cloudprofiler have.
const USUAL: &[&str] = &["*>=*<", "* tin=* tout", "* in=* out", "* begin=* end", "* start=* stop"];

/// A name, in which one `*` may stand for any text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern {
    before: String,
    /// `None` without `*`.
    after: Option<String>,
}

impl From<&str> for Pattern {
    fn from(text: &str) -> Self {
        match text.split_once('*') {
            Some((before, after)) => {
                Self { before: before.to_owned(), after: Some(after.to_owned()) }
            }
            None => Self { before: text.to_owned(), after: None },
        }
    }
}

impl Pattern {
    /// What `*` stands for in `name`, empty where there is none; `None` if it is another name.
    pub fn part<'name>(&self, name: &'name str) -> Option<&'name str> {
        let rest = name.strip_prefix(self.before.as_str())?;
        match &self.after {
            Some(after) => rest.strip_suffix(after.as_str()),
            None => rest.is_empty().then_some(rest),
        }
    }
}

/// Names of the channels at the beginning and the end of spans.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pair {
    begin: Pattern,
    end: Pattern,
}

impl FromStr for Pair {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (begin, end) = text.split_once('=').unwrap_or_default();
        if begin.is_empty() || end.is_empty() || begin == end {
            return Err("expected two names of channels, BEGIN=END".to_owned());
        }
        let pair = Self { begin: begin.into(), end: end.into() };
        if pair.begin.after.is_some() != pair.end.after.is_some() {
            return Err("expected a * in both names or in none".to_owned());
        }
        Ok(pair)
    }
}

impl Pair {
    /// What the span is called: what `*` stands for, else the name of its beginning.
    fn name(&self, part: &str) -> String {
        let name = if self.begin.after.is_some() { part.trim() } else { &self.begin.before };
        if name.is_empty() { "span" } else { name }.to_owned()
    }
}

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
    pub fn of(log: &Log, named: &[Pair]) -> Self {
        let channels =
            log.channels().map(|(process, channel)| (process, channel.id, &*channel.name));
        Self::among(channels.collect(), named)
    }

    fn among(mut channels: Vec<(usize, ChannelId, &str)>, named: &[Pair]) -> Self {
        channels.sort_unstable();
        let mut all = Self::default();
        let mut places: HashMap<String, usize> = HashMap::new();
        let usual = USUAL.iter().filter_map(|pair| pair.parse().ok());
        for pair in named.iter().cloned().chain(usual) {
            let ends: HashMap<(usize, &str), ChannelId> = channels
                .iter()
                .filter_map(|(process, id, name)| Some(((*process, pair.end.part(name)?), *id)))
                .collect();
            for (process, begin, name) in &channels {
                let Some(part) = pair.begin.part(name) else { continue };
                let Some(end) = ends.get(&(*process, part)) else { continue };
                let (begin, end) = ((*process, *begin), (*process, *end));
                if all.roles.contains_key(&begin) || all.roles.contains_key(&end) || begin == end {
                    continue;
                }
                let name = pair.name(part);
                let place = *places.entry(name.clone()).or_insert(all.names.len());
                if place == all.names.len() {
                    all.names.push(name);
                }
                all.roles.insert(begin, Role::Begin(place));
                all.roles.insert(end, Role::End(place));
            }
        }
        all
    }

    pub fn get(&self, process: usize, channel: ChannelId) -> Option<Role> {
        self.roles.get(&(process, channel)).copied()
    }

    /// The names of spans, of all processes together.
    pub fn names(&self) -> &[String] {
        &self.names
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair(text: &str) -> Pair {
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
        let roles = Roles::among(channels.to_vec(), &[]);
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
        let roles = Roles::among(channels.to_vec(), &[pair("*>=done *"), pair("go=a<")]);
        assert_eq!(roles.names(), ["a", "go"]);
        assert_eq!(roles.get(0, 1), Some(Role::Begin(0)));
        assert_eq!(roles.get(0, 3), Some(Role::End(0)));
        assert_eq!(roles.get(0, 4), Some(Role::Begin(1)));
        assert_eq!(roles.get(0, 2), Some(Role::End(1)));
    }

    #[test]
    fn what_is_no_pair_is_refused() {
        for text in ["", "a", "=a", "a=", "a=a", "*=b", "a=*b"] {
            assert!(text.parse::<Pair>().is_err(), "{text}");
        }
    }
}
