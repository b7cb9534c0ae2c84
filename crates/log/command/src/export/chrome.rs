// SPDX-License-Identifier: Apache-2.0
//! The JSON of chrome://tracing ("Trace Event Format"), an event a line.

use super::{Exporter, Source};
use crate::reader::log::{Row, What};
use crate::reader::spans::{Open, SpanEvent};
use serde::{Serialize, Serializer};
use std::borrow::Cow;
use std::collections::HashSet;
use std::io::{self, Write};
use tare_log_file::Payload;

const BEGIN: &[u8] = b"{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n";

pub struct Chrome<'log, Out> {
    source: Source<'log>,
    out: Out,
    /// Times count from here: in microseconds since the Unix epoch, a double has no room for
    /// nanoseconds.
    began_ns: i64,
    has_begun: bool,
    processes: HashSet<usize>,
    threads: HashSet<(usize, u32)>,
}

#[derive(Serialize)]
struct Event<'row> {
    ph: &'static str,
    pid: u32,
    tid: u32,
    name: &'row str,
    /// Microseconds.
    ts: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    dur: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    s: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cat: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<String>,
    args: Args<'row>,
}

struct Args<'row>(&'row [(&'static str, Value<'row>)]);

impl Serialize for Args<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(key, value)| (key, value)))
    }
}

/// A number in JSON is exact up to 2^53 in most readers, and kept as it is here.
#[derive(Serialize)]
#[serde(untagged)]
enum Value<'row> {
    Number(i64),
    Count(u64),
    Text(Cow<'row, str>),
}

impl<'row> From<Payload<'row>> for Value<'row> {
    fn from(payload: Payload<'row>) -> Self {
        match payload {
            Payload::Number(number) => Self::Number(number),
            Payload::Bytes(bytes) => Self::Text(String::from_utf8_lossy(bytes)),
        }
    }
}

impl<'log, Out: Write> Chrome<'log, Out> {
    pub fn new(source: Source<'log>, out: Out) -> Self {
        let (processes, threads) = (HashSet::new(), HashSet::new());
        let began_ns = source.log.began_ns().unwrap_or_default();
        Self { source, out, began_ns, has_begun: false, processes, threads }
    }

    fn write(&mut self, event: &Event<'_>) -> io::Result<()> {
        self.out.write_all(if self.has_begun { b",\n" } else { BEGIN })?;
        self.has_begun = true;
        Ok(serde_json::to_writer(&mut self.out, event)?)
    }

    /// Names process and thread before their first event.
    fn name(&mut self, row: &Row<'_>) -> io::Result<()> {
        if self.processes.insert(row.process) {
            self.metadata(row, "process_name", self.source.program(row.process))?;
        }
        if self.threads.insert((row.process, row.tid)) {
            self.metadata(row, "thread_name", row.thread)?;
        }
        Ok(())
    }

    fn metadata(&mut self, row: &Row<'_>, what: &str, name: &str) -> io::Result<()> {
        let args = [("name", Value::Text(name.into()))];
        let event = self.event(row, "M", Some(self.began_ns), what, &args);
        self.write(&event)
    }

    fn event<'row>(
        &self,
        row: &Row<'_>,
        ph: &'static str,
        time_ns: Option<i64>,
        name: &'row str,
        args: &'row [(&'static str, Value<'row>)],
    ) -> Event<'row> {
        Event {
            ph,
            pid: self.source.pids[row.process],
            tid: row.tid,
            name,
            ts: microseconds(time_ns.unwrap_or_default().saturating_sub(self.began_ns)),
            dur: None,
            s: None,
            cat: None,
            id: None,
            args: Args(args),
        }
    }

    /// A slice that ends with the row.
    fn slice(
        &mut self,
        row: &Row<'_>,
        open: &Open,
        end: (&'static str, Value<'_>),
    ) -> io::Result<()> {
        let args = [("payload", open.value.payload().into()), end];
        let length = row.time_ns.zip(open.time_ns).map(|(end, begin)| end.saturating_sub(begin));
        let dur = Some(microseconds(length.unwrap_or_default()));
        let event = self.event(row, "X", open.time_ns, self.name_of(open), &args);
        self.write(&Event { dur, ..event })
    }

    /// An asynchronous pair: it is no slice of the thread, and may lie across some.
    fn loss(&mut self, row: &Row<'_>, lost: u64, first: u64, last: u64) -> io::Result<()> {
        let times = self.source.log.times(row.process);
        let name = format!("{lost} events lost");
        let args = [("lost", Value::Count(lost))];
        for (kind, ticks) in [("b", first), ("e", last.max(first))] {
            let pid = self.source.pids[row.process];
            let id = Some(format!("{pid}:{}:{first}", row.tid));
            let event = self.event(row, kind, times.at(ticks), &name, &args);
            self.write(&Event { cat: Some("lost"), id, ..event })?;
        }
        Ok(())
    }

    fn name_of(&self, open: &Open) -> &'log str {
        &self.source.roles.names()[open.name]
    }
}

impl<Out: Write> Exporter for Chrome<'_, Out> {
    fn add(&mut self, row: &Row<'_>, span_event: SpanEvent<'_>) -> io::Result<()> {
        self.name(row)?;
        match (span_event, row.what) {
            (SpanEvent::End(open, _), What::Event { payload, .. }) => {
                self.slice(row, open, ("end payload", payload.into()))
            }
            (SpanEvent::Cut(open), _) => {
                self.slice(row, open, ("end", Value::Text("not known".into())))
            }
            (SpanEvent::Left(open), _) => {
                let args = [("payload", open.value.payload().into())];
                let event = self.event(row, "B", row.time_ns, self.name_of(open), &args);
                self.write(&event)
            }
            (
                SpanEvent::Event(_) | SpanEvent::Unbegun,
                What::Event { id, channel, payload: Payload::Number(number) },
            ) if self.source.is_counter(row.process, id) => {
                let args = [("value", Value::Number(number))];
                let event = self.event(row, "C", row.time_ns, channel, &args);
                self.write(&event)
            }
            (SpanEvent::Event(_) | SpanEvent::Unbegun, What::Event { channel, payload, .. }) => {
                let args = [("payload", payload.into())];
                let event = self.event(row, "i", row.time_ns, channel, &args);
                // Of the thread.
                self.write(&Event { s: Some("t"), ..event })
            }
            (SpanEvent::Loss, What::Loss { lost, first, last }) => {
                self.loss(row, lost, first, last)
            }
            _ => Ok(()),
        }
    }

    fn finish(&mut self) -> io::Result<()> {
        self.out.write_all(if self.has_begun { b"" } else { BEGIN })?;
        let began = self.began_ns;
        write!(self.out, "\n],\"otherData\":{{\"began_unix_nano\":\"{began}\"}}}}\n")?;
        self.out.flush()
    }
}

/// The format's unit; exact for a hundred days.
fn microseconds(nanoseconds: i64) -> f64 {
    nanoseconds as f64 / 1000.0
}
