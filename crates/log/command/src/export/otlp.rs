// SPDX-License-Identifier: Apache-2.0
//! OpenTelemetry's protocol as JSON lines, as the Collector's file exporter writes them: spans as
//! traces, the rest as logs, each with the span it was logged in.

use super::ids::Ids;
use super::{Exporter, Source, text_of};
use crate::log::{Row, What};
use crate::spans::{Happening, Open};
use serde_json::{Value as Json, json};
use std::io::{self, Write};
use tare_log_file::Payload;

/// Spans or records of logs that become one line.
const BATCH: usize = 512;

/// Severity numbers of the protocol.
const INFO: (u32, &str) = (9, "INFO");
const WARN: (u32, &str) = (13, "WARN");

pub struct Otlp<'log, Out> {
    source: Source<'log>,
    ids: Ids,
    out: Out,
    /// Of one process, which the lines name.
    process: usize,
    spans: Vec<Json>,
    records: Vec<Json>,
}

impl<'log, Out: Write> Otlp<'log, Out> {
    pub fn new(source: Source<'log>, out: Out) -> Self {
        let (spans, records) = (Vec::new(), Vec::new());
        Self { source, ids: Ids::of(source.log), out, process: 0, spans, records }
    }

    fn resource(&self) -> Json {
        let info = &self.source.log.processes()[self.process];
        json!({"attributes": [
            attribute("service.name", &text(self.source.program(self.process))),
            attribute("host.name", &text(&info.host)),
            attribute("process.pid", &number(info.pid.into())),
            attribute("process.command_line", &text(&info.command)),
        ]})
    }

    fn flush_spans(&mut self) -> io::Result<()> {
        if self.spans.is_empty() {
            return Ok(());
        }
        let spans = std::mem::take(&mut self.spans);
        let scopes = json!([{"scope": {"name": "tare.log"}, "spans": spans}]);
        let line = json!({"resourceSpans": [{"resource": self.resource(), "scopeSpans": scopes}]});
        writeln!(self.out, "{line}")
    }

    fn flush_records(&mut self) -> io::Result<()> {
        if self.records.is_empty() {
            return Ok(());
        }
        let records = std::mem::take(&mut self.records);
        let scopes = json!([{"scope": {"name": "tare.log"}, "logRecords": records}]);
        let line = json!({"resourceLogs": [{"resource": self.resource(), "scopeLogs": scopes}]});
        writeln!(self.out, "{line}")
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
        let mut attributes = thread(row);
        attributes.push(payload("tare.payload", open.value.payload()));
        attributes.push(payload("tare.end_payload", end));
        let begin = open.time_ns.unwrap_or_default();
        let end = row.time_ns.unwrap_or_default().max(begin);
        let mut span = json!({
            "traceId": self.ids.trace(row.process, open.root),
            "spanId": self.ids.span(open.id),
            "name": self.source.roles.names()[open.name],
            // Internal.
            "kind": 1,
            "startTimeUnixNano": begin.to_string(),
            "endTimeUnixNano": end.to_string(),
            "attributes": attributes,
        });
        if let Some(parent) = open.parent {
            span["parentSpanId"] = self.ids.span(parent).into();
        }
        self.spans.push(span);
        if self.spans.len() < BATCH { Ok(()) } else { self.flush_spans() }
    }

    fn record(
        &mut self,
        row: &Row<'_>,
        (severity, body): ((u32, &str), &str),
        within: Option<&Open>,
        more: &[Json],
    ) -> io::Result<()> {
        let mut attributes = thread(row);
        attributes.extend_from_slice(more);
        let time = row.time_ns.unwrap_or_default().to_string();
        let mut record = json!({
            "timeUnixNano": time,
            "observedTimeUnixNano": time,
            "severityNumber": severity.0,
            "severityText": severity.1,
            "body": text(body),
            "attributes": attributes,
        });
        if let Some(open) = within {
            record["traceId"] = self.ids.trace(row.process, open.root).into();
            record["spanId"] = self.ids.span(open.id).into();
        }
        self.records.push(record);
        if self.records.len() < BATCH { Ok(()) } else { self.flush_records() }
    }
}

impl<Out: Write> Exporter for Otlp<'_, Out> {
    fn add(&mut self, row: &Row<'_>, happening: Happening<'_>) -> io::Result<()> {
        self.turn_to(row.process)?;
        match (happening, row.what) {
            (Happening::End(open, _), What::Event { payload, .. }) => self.span(row, open, payload),
            // A span without its end is none in this protocol.
            (Happening::Cut(open) | Happening::Left(open), _) => {
                let names = self.source.roles.names();
                let body = format!("the end of {} is not known", names[open.name]);
                let begun = open.time_ns.unwrap_or_default().to_string();
                let begun = [attribute("tare.begun_unix_nano", &json!({"intValue": begun}))];
                self.record(row, (WARN, &body), Some(open), &begun)
            }
            (Happening::Event(within), What::Event { channel, payload: value, .. }) => {
                self.record(row, (INFO, channel), within, &[payload("tare.payload", value)])
            }
            (Happening::Unbegun, What::Event { channel, payload: value, .. }) => {
                let body = format!("{channel} has no beginning");
                self.record(row, (WARN, &body), None, &[payload("tare.payload", value)])
            }
            (Happening::Loss, What::Loss { lost, .. }) => {
                let body = format!("{lost} events lost");
                self.record(
                    row,
                    (WARN, &body),
                    None,
                    &[attribute("tare.lost", &number(lost as i64))],
                )
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

fn thread(row: &Row<'_>) -> Vec<Json> {
    let id = attribute("thread.id", &number(row.tid.into()));
    vec![id, attribute("thread.name", &text(row.thread))]
}

fn payload(key: &str, payload: Payload<'_>) -> Json {
    match payload {
        Payload::Number(value) => attribute(key, &number(value)),
        Payload::Bytes(_) => attribute(key, &text(&text_of(payload))),
    }
}

fn attribute(key: &str, value: &Json) -> Json {
    json!({"key": key, "value": value})
}

fn text(value: &str) -> Json {
    json!({"stringValue": value})
}

/// 64 bits are a text in the JSON of protocol buffers.
fn number(value: i64) -> Json {
    json!({"intValue": value.to_string()})
}
