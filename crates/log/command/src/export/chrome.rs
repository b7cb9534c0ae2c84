// SPDX-License-Identifier: Apache-2.0
//! The JSON of chrome://tracing ("Trace Event Format"), an event a line.

use super::{Exporter, Source, text_of};
use crate::log::{Row, What};
use crate::spans::{Happening, Open};
use serde_json::{Value as Json, json};
use std::collections::HashSet;
use std::io::{self, Write};
use tare_log_file::Payload;

const BEGIN: &str = "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n";

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

impl<'log, Out: Write> Chrome<'log, Out> {
    pub fn new(source: Source<'log>, out: Out) -> Self {
        let (processes, threads) = (HashSet::new(), HashSet::new());
        let began_ns = source.log.began_ns().unwrap_or_default();
        Self { source, out, began_ns, has_begun: false, processes, threads }
    }

    fn write(&mut self, event: &Json) -> io::Result<()> {
        let before = if self.has_begun { ",\n" } else { BEGIN };
        self.has_begun = true;
        write!(self.out, "{before}{event}")
    }

    /// Names process and thread before their first event.
    fn name(&mut self, row: &Row<'_>) -> io::Result<()> {
        if self.processes.insert(row.process) {
            let name = self.source.program(row.process).to_owned();
            self.metadata(row, "process_name", &name)?;
        }
        if self.threads.insert((row.process, row.tid)) {
            self.metadata(row, "thread_name", row.thread)?;
        }
        Ok(())
    }

    fn metadata(&mut self, row: &Row<'_>, what: &str, name: &str) -> io::Result<()> {
        self.write(&json!({
            "ph": "M", "pid": row.pid, "tid": row.tid, "name": what, "args": {"name": name},
        }))
    }

    fn event(&self, row: &Row<'_>, kind: &str, time: Option<i64>, name: &str, args: Json) -> Json {
        let time = time.unwrap_or_default() - self.began_ns;
        json!({
            "ph": kind, "pid": row.pid, "tid": row.tid, "ts": microseconds(time), "name": name,
            "args": args,
        })
    }

    /// A slice that ends with the row.
    fn slice(&mut self, row: &Row<'_>, open: &Open, args: Json) -> io::Result<()> {
        let name = &self.source.roles.names()[open.name];
        let mut event = self.event(row, "X", open.time_ns, name, args);
        let length = row.time_ns.zip(open.time_ns).map_or(0, |(end, begin)| end - begin);
        event["dur"] = microseconds(length).into();
        self.write(&event)
    }

    /// An asynchronous pair: it is no slice of the thread, and may lie across some.
    fn loss(&mut self, row: &Row<'_>, lost: u64, first: u64, last: u64) -> io::Result<()> {
        let times = self.source.log.times(row.process);
        for (kind, ticks) in [("b", first), ("e", last.max(first))] {
            let name = format!("{lost} events lost");
            let mut event = self.event(row, kind, times.at(ticks), &name, json!({"lost": lost}));
            event["cat"] = "lost".into();
            event["id"] = format!("{}:{}:{first}", row.pid, row.tid).into();
            self.write(&event)?;
        }
        Ok(())
    }
}

impl<Out: Write> Exporter for Chrome<'_, Out> {
    fn add(&mut self, row: &Row<'_>, happening: Happening<'_>) -> io::Result<()> {
        self.name(row)?;
        match (happening, row.what) {
            (Happening::End(open, _), What::Event { payload, .. }) => {
                let begin = value(open.value.payload());
                self.slice(row, open, json!({"payload": begin, "end payload": value(payload)}))
            }
            (Happening::Cut(open), _) => {
                let begin = value(open.value.payload());
                self.slice(row, open, json!({"payload": begin, "end": "not known"}))
            }
            (Happening::Left(open), _) => {
                let name = &self.source.roles.names()[open.name];
                let args = json!({"payload": value(open.value.payload())});
                self.write(&self.event(row, "B", row.time_ns, name, args))
            }
            (
                Happening::Event(_) | Happening::Unbegun,
                What::Event { id, channel, payload: Payload::Number(number) },
            ) if self.source.is_counter(row.process, id) => {
                self.write(&self.event(row, "C", row.time_ns, channel, json!({"value": number})))
            }
            (Happening::Event(_) | Happening::Unbegun, What::Event { channel, payload, .. }) => {
                let args = json!({"payload": value(payload)});
                let mut event = self.event(row, "i", row.time_ns, channel, args);
                // Of the thread.
                event["s"] = "t".into();
                self.write(&event)
            }
            (Happening::Loss, What::Loss { lost, first, last }) => {
                self.loss(row, lost, first, last)
            }
            _ => Ok(()),
        }
    }

    fn finish(&mut self) -> io::Result<()> {
        let before = if self.has_begun { "" } else { BEGIN };
        let about = json!({"began_unix_nano": self.began_ns.to_string()});
        write!(self.out, "{before}\n],\"otherData\":{about}}}\n")?;
        self.out.flush()
    }
}

/// The format's unit; exact for a hundred days.
fn microseconds(nanoseconds: i64) -> f64 {
    nanoseconds as f64 / 1000.0
}

/// A number in JSON is exact up to 2^53 in most readers, and kept as it is here.
fn value(payload: Payload<'_>) -> Json {
    match payload {
        Payload::Number(number) => number.into(),
        Payload::Bytes(_) => text_of(payload).into(),
    }
}
