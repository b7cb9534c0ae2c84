// SPDX-License-Identifier: Apache-2.0
//! Patterns for the names of channels, and pairs of them, which name spans.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;
use tare_log_segment::ChannelId;

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

impl fmt::Display for Pattern {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let after = self.after.as_ref().map_or(String::new(), |after| format!("*{after}"));
        write!(to, "{}{after}", self.before)
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
pub struct SpanPattern {
    pub begin: Pattern,
    pub end: Pattern,
}

impl FromStr for SpanPattern {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (begin, end) = text.split_once('=').unwrap_or_default();
        if begin.is_empty() || end.is_empty() || begin == end {
            return Err("expected two channel names, BEGIN=END".to_owned());
        }
        let pair = Self { begin: begin.into(), end: end.into() };
        if pair.begin.after.is_some() != pair.end.after.is_some() {
            return Err("expected a * in both names or in none".to_owned());
        }
        Ok(pair)
    }
}

impl SpanPattern {
    /// Whether a process has both.
    pub fn is_among(&self, channels: &[(usize, ChannelId, &str)]) -> bool {
        let parts = |pattern: &Pattern| -> BTreeSet<_> {
            let parts = channels.iter().map(|(process, _, name)| (*process, pattern.part(name)));
            parts.filter(|(_, part)| part.is_some()).collect()
        };
        !parts(&self.begin).is_disjoint(&parts(&self.end))
    }

    /// What the span is called: what `*` stands for, else the name of its beginning.
    pub fn name(&self, part: &str) -> String {
        let name = if self.begin.after.is_some() { part.trim() } else { &self.begin.before };
        if name.is_empty() { "span" } else { name }.to_owned()
    }
}
