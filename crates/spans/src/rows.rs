// SPDX-License-Identifier: Apache-2.0
//! From spans as they were sent to rows of samples, and the reasons why others are rejected.

use crate::attributes::{Keys, Values};
use crate::otlp::{Span, SpanStatus};
use std::collections::HashSet;
use std::fmt::Write;
use std::sync::Arc;

/// Different names of spans, services and hosts, and combinations of attributes, of one file.
const MOST_NAMES: usize = 10_000;
const LONGEST_NAME: usize = 1_024;
const KINDS: [&str; 6] = ["", "", "server", "client", "producer", "consumer"];

#[derive(Debug, PartialEq)]
pub struct Row {
    pub host: Option<Arc<str>>,
    pub service: Option<Arc<str>>,
    pub span: Arc<str>,
    pub trace_id: [u8; 16],
    pub span_id: [u8; 8],
    pub parent_id: Option<[u8; 8]>,
    pub start_ns: i64,
    pub duration_ns: i64,
    pub ok: bool,
    /// As JSON.
    pub attributes: Option<Arc<str>>,
}

/// The number of spans that were rejected, by reason.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Rejected {
    pub bad_ids: u64,
    pub bad_times: u64,
    pub too_many_names: u64,
}

impl Rejected {
    pub fn total(&self) -> u64 {
        self.bad_ids + self.bad_times + self.too_many_names
    }

    pub fn add(&mut self, other: &Self) {
        self.bad_ids += other.bad_ids;
        self.bad_times += other.bad_times;
        self.too_many_names += other.too_many_names;
    }

    /// The reasons, for the sender and for the summary.
    pub fn reasons(&self) -> String {
        let mut text = String::new();
        for (number, reason) in [
            (self.bad_ids, "without a trace ID of 16 and a span ID of 8 bytes"),
            (self.bad_times, "that did not end after their start"),
            (self.too_many_names, "with more than 10,000 different names or attributes"),
        ] {
            if number > 0 {
                let comma = if text.is_empty() { "" } else { ", " };
                write!(text, "{comma}{number} {reason}").expect("a String grows");
            }
        }
        text
    }
}

/// The names seen so far: a row shares them.
#[derive(Debug, Default)]
pub struct Names(HashSet<Arc<str>>);

impl Names {
    /// The shared text; None if it is new and there are too many.
    fn get(&mut self, name: &str) -> Option<Arc<str>> {
        if let Some(known) = self.0.get(name) {
            return Some(known.clone());
        }
        if self.0.len() >= MOST_NAMES {
            return None;
        }
        let new: Arc<str> = name.into();
        self.0.insert(new.clone());
        Some(new)
    }
}

/// Makes rows of the spans of one request.
pub struct RowBuilder<'names> {
    names: &'names mut Names,
    keys: &'names Keys,
    service: Option<String>,
    /// Service and host of the spans that follow; None if a name is new and there are too many.
    shared: Option<[Option<Arc<str>>; 2]>,
    attributes: Values<'names>,
    name: String,
    pub rows: Vec<Row>,
    pub rejected: Rejected,
}

impl<'names> RowBuilder<'names> {
    pub fn new(names: &'names mut Names, keys: &'names Keys) -> Self {
        Self {
            names,
            keys,
            attributes: Values::new(keys),
            service: None,
            shared: Some([None, None]),
            name: String::new(),
            rows: Vec::new(),
            rejected: Rejected::default(),
        }
    }

    /// For the attributes of a span or resource.
    pub fn values(&self) -> Values<'names> {
        Values::new(self.keys)
    }

    /// The resource of the spans that follow: `service.name`, `host.name`, and what is kept.
    pub fn resource(
        &mut self,
        service: Option<String>,
        host: Option<String>,
        attributes: Values<'names>,
    ) {
        self.attributes = attributes;
        let mut shared = [None, None];
        let mut has_room = true;
        for (place, text) in shared.iter_mut().zip([&service, &host]) {
            if let Some(text) = text {
                *place = self.names.get(shortened(text));
                has_room &= place.is_some();
            }
        }
        self.shared = has_room.then_some(shared);
        // Each span copies it: what no name would show of a long one is left out before.
        self.service = service.map(|service| shortened(&service).to_owned());
    }

    /// Adds the row of a span, or counts why it is rejected.
    pub fn span(&mut self, span: &Span, attributes: &Values<'_>) {
        let Some((trace_id, span_id)) = ids(span) else {
            self.rejected.bad_ids += 1;
            return;
        };
        let Some((start_ns, duration_ns)) = times(span) else {
            self.rejected.bad_times += 1;
            return;
        };
        full_name(&mut self.name, self.service.as_deref(), span);
        let kept = attributes.json(&self.attributes).map(|text| self.names.get(&text));
        let (Some([service, host]), Some(name), None | Some(Some(_))) =
            (self.shared.clone(), self.names.get(shortened(&self.name)), &kept)
        else {
            self.rejected.too_many_names += 1;
            return;
        };
        self.rows.push(Row {
            host,
            service,
            span: name,
            trace_id,
            span_id,
            parent_id: span.parent_span_id[..].try_into().ok().filter(|id| *id != [0; 8]),
            start_ns,
            duration_ns,
            ok: span.status.as_ref().is_none_or(|status| status.code != SpanStatus::ERROR),
            attributes: kept.flatten(),
        });
    }
}

/// `shop: GET / (server)`, as files of traces are read.
fn full_name(name: &mut String, service: Option<&str>, span: &Span) {
    name.clear();
    if let Some(service) = service {
        name.push_str(service);
        name.push_str(": ");
    }
    name.push_str(&span.name);
    let kind = usize::try_from(span.kind).ok().and_then(|kind| KINDS.get(kind)).unwrap_or(&"");
    if !kind.is_empty() {
        write!(name, " ({kind})").expect("a String grows");
    }
}

fn ids(span: &Span) -> Option<([u8; 16], [u8; 8])> {
    let trace = span.trace_id[..].try_into().ok().filter(|id| *id != [0; 16])?;
    let own = span.span_id[..].try_into().ok().filter(|id| *id != [0; 8])?;
    Some((trace, own))
}

/// Start and duration in ns.
fn times(span: &Span) -> Option<(i64, i64)> {
    let start = i64::try_from(span.start_time_unix_nano).ok().filter(|start| *start > 0)?;
    let end = i64::try_from(span.end_time_unix_nano).ok().filter(|end| *end >= start)?;
    Some((start, end - start))
}

/// The beginning of a name that is too long.
fn shortened(name: &str) -> &str {
    if name.len() <= LONGEST_NAME { name } else { &name[..name.floor_char_boundary(LONGEST_NAME)] }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(service: &str, spans: &[Span], names: &mut Names) -> (Vec<Row>, Rejected) {
        let keys = Keys::default();
        let mut builder = RowBuilder::new(names, &keys);
        let none = builder.values();
        builder.resource((!service.is_empty()).then(|| service.to_owned()), None, builder.values());
        spans.iter().for_each(|span| builder.span(span, &none));
        (builder.rows, builder.rejected)
    }

    fn span(name: &str) -> Span {
        Span {
            trace_id: vec![1; 16],
            span_id: vec![2; 8],
            parent_span_id: vec![],
            name: name.to_owned(),
            kind: 2,
            start_time_unix_nano: 100,
            end_time_unix_nano: 130,
            status: None,
        }
    }

    #[test]
    fn a_span_is_a_row() {
        let inner = Span { parent_span_id: vec![3; 8], kind: 1, ..span("pay") };
        let mut failed = span("GET /");
        failed.status = Some(SpanStatus { code: SpanStatus::ERROR });
        let (rows, rejected) = rows("shop", &[span("GET /"), inner, failed], &mut Names::default());
        assert_eq!(rejected, Rejected::default());
        let names: Vec<_> = rows.iter().map(|row| &*row.span).collect();
        assert_eq!(names, ["shop: GET / (server)", "shop: pay", "shop: GET / (server)"]);
        assert_eq!(rows[0].service.as_deref(), Some("shop"));
        assert_eq!((rows[0].start_ns, rows[0].duration_ns, rows[0].ok), (100, 30, true));
        assert_eq!(
            rows.iter().map(|row| row.parent_id).collect::<Vec<_>>(),
            [None, Some([3; 8]), None]
        );
        assert!(!rows[2].ok);
        assert!(Arc::ptr_eq(&rows[0].span, &rows[2].span), "names are shared");
    }

    #[test]
    fn a_parent_of_zeros_is_none() {
        let span = Span { parent_span_id: vec![0; 8], ..span("a") };
        assert_eq!(rows("", &[span], &mut Names::default()).0[0].parent_id, None);
    }

    #[test]
    fn spans_without_ids_or_times_are_rejected_and_counted() {
        let (found, rejected) = rows(
            "",
            &[
                Span { trace_id: vec![1; 15], ..span("a") },
                Span { trace_id: vec![0; 16], ..span("a") },
                Span { span_id: vec![], ..span("a") },
                Span { end_time_unix_nano: 0, ..span("a") },
                Span { end_time_unix_nano: 99, ..span("a") },
                Span { start_time_unix_nano: u64::MAX, ..span("a") },
                Span { end_time_unix_nano: 100, ..span("instant") },
            ],
            &mut Names::default(),
        );
        assert_eq!(found.len(), 1);
        assert_eq!(&*found[0].span, "instant (server)");
        assert_eq!(rejected, Rejected { bad_ids: 3, bad_times: 3, too_many_names: 0 });
        assert_eq!(
            rejected.reasons(),
            "3 without a trace ID of 16 and a span ID of 8 bytes, 3 that did not end after their \
             start"
        );
    }

    #[test]
    fn a_million_names_take_no_memory() {
        let mut names = Names::default();
        let mut accepted = 0;
        for number in 0..MOST_NAMES + 100 {
            accepted += rows("", &[span(&number.to_string())], &mut names).0.len();
        }
        assert_eq!(accepted, MOST_NAMES);
        let (known, rejected) = rows("x", &[span("0")], &mut names);
        assert_eq!((known.len(), rejected.too_many_names), (0, 1), "a new service");
        assert_eq!(rows("", &[span("0")], &mut names).0.len(), 1, "a known name");
    }

    #[test]
    fn spans_do_not_copy_what_no_name_shows_of_a_long_service() {
        let service = "ä".repeat(100_000);
        let mut names = Names::default();
        let keys = Keys::default();
        let mut builder = RowBuilder::new(&mut names, &keys);
        let none = builder.values();
        builder.resource(Some(service.clone()), None, builder.values());
        builder.span(&span("GET /"), &none);
        assert!(builder.name.len() < 2 * LONGEST_NAME, "{} bytes", builder.name.len());
        assert_eq!(&*builder.rows[0].span, &service[..LONGEST_NAME]);
    }

    #[test]
    fn a_long_name_is_cut_between_characters() {
        let (rows, _) = rows("", &[span(&"ä".repeat(5_000))], &mut Names::default());
        assert_eq!(&*rows[0].span, "ä".repeat(LONGEST_NAME / 2));
    }
}
