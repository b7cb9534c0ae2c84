// SPDX-License-Identifier: Apache-2.0
//! Spans as Jaeger's collector writes them to a topic of Kafka: one protobuf message per span.
//!
//! Source: jaegertracing/jaeger-idl, `proto/api_v2/model.proto`.

use crate::otlp::{Span, SpanStatus};
use crate::rows::RowBuilder;
use prost::Message;

#[derive(Clone, PartialEq, Message)]
struct JaegerSpan {
    #[prost(bytes = "vec", tag = "1")]
    trace_id: Vec<u8>,
    #[prost(bytes = "vec", tag = "2")]
    span_id: Vec<u8>,
    #[prost(string, tag = "3")]
    operation_name: String,
    #[prost(message, repeated, tag = "4")]
    references: Vec<Reference>,
    #[prost(message, optional, tag = "6")]
    start_time: Option<Time>,
    #[prost(message, optional, tag = "7")]
    duration: Option<Time>,
    #[prost(message, repeated, tag = "8")]
    tags: Vec<Tag>,
    #[prost(message, optional, tag = "10")]
    process: Option<Process>,
}

#[derive(Clone, PartialEq, Message)]
struct Reference {
    #[prost(bytes = "vec", tag = "1")]
    trace_id: Vec<u8>,
    #[prost(bytes = "vec", tag = "2")]
    span_id: Vec<u8>,
}

/// `google.protobuf.Timestamp` and `google.protobuf.Duration`.
#[derive(Clone, Copy, PartialEq, Message)]
struct Time {
    #[prost(int64, tag = "1")]
    seconds: i64,
    #[prost(int32, tag = "2")]
    nanos: i32,
}

/// A tag of a simple type.
#[derive(Clone, PartialEq, Message)]
struct Tag {
    #[prost(string, tag = "1")]
    key: String,
    #[prost(string, tag = "3")]
    text: String,
    #[prost(bool, tag = "4")]
    flag: bool,
    #[prost(int32, tag = "2")]
    kind: i32,
    #[prost(int64, tag = "5")]
    integer: i64,
    #[prost(double, tag = "6")]
    double: f64,
}

impl Tag {
    /// None if it is bytes.
    fn value(&self) -> Option<String> {
        match self.kind {
            0 => Some(self.text.clone()),
            1 => Some(self.flag.to_string()),
            2 => Some(self.integer.to_string()),
            3 => Some(self.double.to_string()),
            _ => None,
        }
    }
}

#[derive(Clone, PartialEq, Message)]
struct Process {
    #[prost(string, tag = "1")]
    service_name: String,
    #[prost(message, repeated, tag = "2")]
    tags: Vec<Tag>,
}

/// Whether a message is such a span: it begins with IDs of 16 and 8 bytes. A request of OTLP has
/// only one field, so nothing follows its first message but the next one.
pub fn is_span(message: &[u8]) -> bool {
    message.starts_with(&[0x0a, 16]) && message.get(18..20) == Some(&[0x12, 8][..])
}

/// Reads a span; an error is the reason.
pub fn read(message: &[u8], builder: &mut RowBuilder<'_>) -> Result<(), String> {
    let span = JaegerSpan::decode(message).map_err(|error| error.to_string())?;
    let process = span.process.unwrap_or_default();
    let host = ["host.name", "hostname"].iter().find_map(|key| text(&process.tags, key));
    let (mut shared, mut own) = (builder.values(), builder.values());
    for (values, tags) in [(&mut shared, &process.tags), (&mut own, &span.tags)] {
        tags.iter().for_each(|tag| values.set(&tag.key, || tag.value()));
    }
    builder.resource(
        Some(process.service_name).filter(|name| !name.is_empty()),
        host.map(str::to_owned),
        shared,
    );
    let start = nanoseconds(span.start_time);
    let error = span.tags.iter().any(|tag| tag.key == "error" && (tag.flag || tag.text == "true"));
    let parent = span.references.into_iter().find(|of| of.trace_id == span.trace_id);
    let span = Span {
        kind: match text(&span.tags, "span.kind") {
            Some("server") => 2,
            Some("client") => 3,
            Some("producer") => 4,
            Some("consumer") => 5,
            _ => 0,
        },
        trace_id: span.trace_id,
        span_id: span.span_id,
        parent_span_id: parent.map(|of| of.span_id).unwrap_or_default(),
        name: span.operation_name,
        start_time_unix_nano: start.unwrap_or(0),
        // Without a duration, the end is before the start.
        end_time_unix_nano: start
            .and_then(|start| start.checked_add(nanoseconds(span.duration)?))
            .unwrap_or(0),
        status: error.then_some(SpanStatus { code: SpanStatus::ERROR }),
    };
    builder.span(&span, &own);
    Ok(())
}

fn text<'tags>(tags: &'tags [Tag], key: &str) -> Option<&'tags str> {
    let tag = tags.iter().find(|tag| tag.key == key && !tag.text.is_empty())?;
    Some(&tag.text)
}

/// None if it is negative or too large. A message without fields is 0.
fn nanoseconds(time: Option<Time>) -> Option<u64> {
    let Time { seconds, nanos } = time?;
    u64::try_from(seconds.checked_mul(1_000_000_000)?.checked_add(nanos.into())?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attributes::Keys;
    use crate::rows::{Names, Rejected, Row};
    use proptest::prelude::*;

    fn rows(message: &[u8]) -> Result<(Vec<Row>, Rejected), String> {
        let (mut names, keys) = (Names::default(), Keys::of(&["tier", "hostname"]));
        let mut builder = RowBuilder::new(&mut names, &keys);
        read(message, &mut builder)?;
        Ok((builder.rows, builder.rejected))
    }

    fn tag(key: &str, text: &str, flag: bool) -> Tag {
        Tag { key: key.to_owned(), text: text.to_owned(), flag, ..Tag::default() }
    }

    fn span() -> JaegerSpan {
        JaegerSpan {
            trace_id: vec![1; 16],
            span_id: vec![2; 8],
            operation_name: "GET /".to_owned(),
            references: vec![
                Reference { trace_id: vec![9; 16], span_id: vec![9; 8] },
                Reference { trace_id: vec![1; 16], span_id: vec![3; 8] },
            ],
            start_time: Some(Time { seconds: 1_700_000_000, nanos: 5 }),
            duration: Some(Time { seconds: 0, nanos: 30 }),
            tags: vec![
                tag("span.kind", "server", false),
                tag("error", "", true),
                Tag { key: "tier".to_owned(), kind: 2, integer: -5, ..Tag::default() },
            ],
            process: Some(Process {
                service_name: "shop".to_owned(),
                tags: vec![tag("hostname", "one", false)],
            }),
        }
    }

    #[test]
    fn a_span_is_a_row() {
        let message = span().encode_to_vec();
        assert!(is_span(&message));
        let (rows, rejected) = rows(&message).unwrap();
        assert_eq!(rejected, Rejected::default());
        assert_eq!(
            rows,
            [Row {
                host: Some("one".into()),
                service: Some("shop".into()),
                span: "shop: GET / (server)".into(),
                trace_id: [1; 16],
                span_id: [2; 8],
                parent_id: Some([3; 8]),
                start_ns: 1_700_000_000_000_000_005,
                duration_ns: 30,
                ok: false,
                attributes: Some(r#"{"hostname":"one","tier":"-5"}"#.into()),
            }]
        );
    }

    #[test]
    fn a_span_without_a_time_is_rejected() {
        for broken in [
            JaegerSpan { start_time: None, ..span() },
            JaegerSpan { duration: None, ..span() },
            JaegerSpan { duration: Some(Time { seconds: -1, nanos: 0 }), ..span() },
            JaegerSpan { start_time: Some(Time { seconds: i64::MAX, nanos: 0 }), ..span() },
        ] {
            let (rows, rejected) = rows(&broken.encode_to_vec()).unwrap();
            assert_eq!((rows.len(), rejected.bad_times), (0, 1));
        }
    }

    #[test]
    fn a_span_that_is_cut_is_refused() {
        let whole = span().encode_to_vec();
        assert!(rows(&whole[..whole.len() - 1]).is_err());
    }

    #[test]
    fn other_messages_are_no_spans() {
        for other in [&b""[..], b"{}", &[0x0a, 16], &[0x0a, 4, 0x0a, 2, 0x0a, 0]] {
            assert!(!is_span(other));
        }
    }

    proptest! {
        #[test]
        fn garbage_never_panics(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = rows(&bytes);
        }
    }
}
