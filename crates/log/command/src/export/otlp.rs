// SPDX-License-Identifier: Apache-2.0
//! OpenTelemetry's protocol as JSON lines, as the Collector's file exporter writes them: spans as
//! traces, the rest as logs, each with the span it was logged in.

use super::trace_ids::TraceIds;
use super::{Exporter, Source};
use crate::reader::log::{Row, What};
use crate::reader::spans::{Open, SpanEvent};
use serde::{Serialize, Serializer};
use std::borrow::Cow;
use std::fmt::Display;
use std::io::{self, Write};
use tare_log_file::Payload;

/// Spans or records of logs that become one line.
const BATCH: usize = 512;

pub struct Otlp<'log, Out> {
    source: Source<'log>,
    ids: TraceIds,
    out: Out,
    /// Of one process, which the lines name.
    process: usize,
    spans: Batch,
    records: Batch,
}

/// What becomes a line, as JSON already.
#[derive(Default)]
struct Batch {
    text: Vec<u8>,
    count: usize,
}

impl Batch {
    fn add(&mut self, entry: &impl Serialize) -> io::Result<()> {
        if self.count > 0 {
            self.text.push(b',');
        }
        self.count += 1;
        Ok(serde_json::to_writer(&mut self.text, entry)?)
    }
}

/// Names of the fields are those of the protocol, in which numbers of 64 bits are texts.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Span<'row> {
    trace_id: String,
    span_id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    parent_span_id: Option<String>,
    name: &'row str,
    kind: u32,
    #[serde(serialize_with = "as_text")]
    start_time_unix_nano: i64,
    #[serde(serialize_with = "as_text")]
    end_time_unix_nano: i64,
    attributes: [Attribute<'row>; 4],
}

/// The kind of spans that no message goes between.
const INTERNAL: u32 = 1;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Record<'row> {
    #[serde(skip_serializing_if = "Option::is_none")]
    trace_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    span_id: Option<String>,
    #[serde(serialize_with = "as_text")]
    time_unix_nano: i64,
    #[serde(serialize_with = "as_text")]
    observed_time_unix_nano: i64,
    severity_number: u32,
    severity_text: &'static str,
    body: Value<'row>,
    attributes: [Attribute<'row>; 3],
}

/// Severity numbers of the protocol.
const INFO: (u32, &str) = (9, "INFO");
const WARN: (u32, &str) = (13, "WARN");

#[derive(Serialize)]
struct Attribute<'row> {
    key: &'static str,
    value: Value<'row>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
enum Value<'row> {
    StringValue(Cow<'row, str>),
    #[serde(serialize_with = "as_text")]
    IntValue(i64),
}

impl<'row> From<&'row str> for Value<'row> {
    fn from(text: &'row str) -> Self {
        Self::StringValue(text.into())
    }
}

impl From<i64> for Value<'_> {
    fn from(number: i64) -> Self {
        Self::IntValue(number)
    }
}

impl<'row> From<Payload<'row>> for Value<'row> {
    fn from(payload: Payload<'row>) -> Self {
        match payload {
            Payload::Number(number) => Self::IntValue(number),
            Payload::Bytes(bytes) => Self::StringValue(String::from_utf8_lossy(bytes)),
        }
    }
}

fn as_text<S: Serializer>(number: &impl Display, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(number)
}

fn attribute<'row>(key: &'static str, value: impl Into<Value<'row>>) -> Attribute<'row> {
    Attribute { key, value: value.into() }
}

impl<'log, Out: Write> Otlp<'log, Out> {
    pub fn new(source: Source<'log>, out: Out) -> Self {
        let (spans, records) = (Batch::default(), Batch::default());
        Self { source, ids: TraceIds::of(source.log), out, process: 0, spans, records }
    }

    fn flush_spans(&mut self) -> io::Result<()> {
        let spans = std::mem::take(&mut self.spans);
        self.spans.text = self.line(["resourceSpans", "scopeSpans", "spans"], spans)?;
        Ok(())
    }

    fn flush_records(&mut self) -> io::Result<()> {
        let records = std::mem::take(&mut self.records);
        self.records.text = self.line(["resourceLogs", "scopeLogs", "logRecords"], records)?;
        Ok(())
    }

    /// Writes a batch below these names; gives its memory back.
    fn line(&mut self, [of, scopes, within]: [&str; 3], batch: Batch) -> io::Result<Vec<u8>> {
        let Batch { mut text, count } = batch;
        if count > 0 {
            let info = &self.source.log.processes()[self.process];
            let attributes = [
                attribute("service.name", self.source.program(self.process)),
                attribute("host.name", &*info.host),
                attribute("process.pid", i64::from(info.pid)),
                attribute("process.command_line", &*info.command),
            ];
            write!(self.out, "{{\"{of}\":[{{\"resource\":{{\"attributes\":")?;
            serde_json::to_writer(&mut self.out, &attributes)?;
            write!(self.out, "}},\"{scopes}\":[{{\"scope\":{{\"name\":\"tare.log\"}},")?;
            write!(self.out, "\"{within}\":[")?;
            self.out.write_all(&text)?;
            self.out.write_all(b"]}]}]}\n")?;
        }
        text.clear();
        Ok(text)
    }

    fn turn_to(&mut self, process: usize) -> io::Result<()> {
        if self.process != process {
            self.flush_spans()?;
            self.flush_records()?;
            self.process = process;
        }
        Ok(())
    }

    fn span(&mut self, row: &Row<'_>, open: &Open, end: Payload<'_>) -> io::Result<()> {
        let begin = open.time_ns.unwrap_or_default();
        let [id, name] = thread(row);
        self.spans.add(&Span {
            trace_id: self.ids.trace(open.root),
            span_id: self.ids.span(open.id),
            parent_span_id: open.parent.map(|parent| self.ids.span(parent)),
            name: &self.source.roles.names()[open.name],
            kind: INTERNAL,
            start_time_unix_nano: begin,
            end_time_unix_nano: row.time_ns.unwrap_or_default().max(begin),
            attributes: [
                id,
                name,
                attribute("tare.payload", open.value.payload()),
                attribute("tare.end_payload", end),
            ],
        })?;
        if self.spans.count < BATCH { Ok(()) } else { self.flush_spans() }
    }

    fn record(
        &mut self,
        row: &Row<'_>,
        (severity, body): ((u32, &'static str), &str),
        within: Option<&Open>,
        more: Attribute<'_>,
    ) -> io::Result<()> {
        let time = row.time_ns.unwrap_or_default();
        let [id, name] = thread(row);
        self.records.add(&Record {
            trace_id: within.map(|open| self.ids.trace(open.root)),
            span_id: within.map(|open| self.ids.span(open.id)),
            time_unix_nano: time,
            observed_time_unix_nano: time,
            severity_number: severity.0,
            severity_text: severity.1,
            body: body.into(),
            attributes: [id, name, more],
        })?;
        if self.records.count < BATCH { Ok(()) } else { self.flush_records() }
    }
}

impl<Out: Write> Exporter for Otlp<'_, Out> {
    fn add(&mut self, row: &Row<'_>, span_event: SpanEvent<'_>) -> io::Result<()> {
        self.turn_to(row.process)?;
        match (span_event, row.what) {
            (SpanEvent::End(open, _), What::Event { payload, .. }) => self.span(row, open, payload),
            // A span without its end is none in this protocol.
            (SpanEvent::Cut(open) | SpanEvent::Left(open), _) => {
                let names = self.source.roles.names();
                let body = format!("the end of {} is not known", names[open.name]);
                let begun = attribute("tare.begun_unix_nano", open.time_ns.unwrap_or_default());
                self.record(row, (WARN, &body), Some(open), begun)
            }
            (SpanEvent::Event(within), What::Event { channel, payload, .. }) => {
                self.record(row, (INFO, channel), within, attribute("tare.payload", payload))
            }
            (SpanEvent::Unbegun, What::Event { channel, payload, .. }) => {
                let body = format!("{channel} has no beginning");
                self.record(row, (WARN, &body), None, attribute("tare.payload", payload))
            }
            (SpanEvent::Loss, What::Loss { lost, .. }) => {
                let body = format!("{lost} events lost");
                self.record(row, (WARN, &body), None, attribute("tare.lost", lost as i64))
            }
            _ => Ok(()),
        }
    }

    fn finish(&mut self) -> io::Result<()> {
        self.flush_spans()?;
        self.flush_records()?;
        self.out.flush()
    }
}

fn thread<'row>(row: &Row<'row>) -> [Attribute<'row>; 2] {
    [attribute("thread.id", i64::from(row.tid)), attribute("thread.name", row.thread)]
}
