// SPDX-License-Identifier: Apache-2.0
use crate::argument_values::Moment;
use crate::arguments::{self, Lines};
use crate::reader::log::{Ended, Log, Row, What};
use regex::Regex;
use std::fmt::Write as _;
use std::io::{self, BufWriter, Write};
use std::ops::Range;
use std::process::ExitCode;
use tare_command::Failure;
use tare_command::terminal::{Output, printable_json};
use tare_log_file::Payload;

/// Prints events in the order of the files: each ring's as they came into it.
pub fn dump(arguments: &arguments::Dump) -> Result<ExitCode, Failure> {
    let log = Log::open(&arguments.files)?;
    let filter = Filter::of(arguments, &log)?;
    let mut out = BufWriter::with_capacity(1 << 16, Output::lock());
    let format = if arguments.json { Lines::Jsonl } else { arguments.format };
    let line = match format {
        Lines::Csv => csv,
        Lines::Jsonl => jsonl,
    };
    let header = match format {
        Lines::Csv => "time_ns,ticks,pid,tid,thread,channel,payload,lost\n",
        Lines::Jsonl => "",
    };
    let mut text = header.to_owned();
    let mut has_events = false;
    let printed = log.rows(|row| {
        if !filter.has(&row) {
            return Ok(());
        }
        has_events |= matches!(row.what, What::Event { .. });
        line(&row, &mut text);
        out.write_all(text.as_bytes())?;
        text.clear();
        Ok(())
    });
    let printed = match printed {
        Err(Ended::Failed(failure)) => return Err(failure),
        Err(Ended::Enough(error)) => Err(error),
        Ok(()) => out.write_all(text.as_bytes()).and_then(|()| out.flush()),
    };
    match printed {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            return Err(Failure::work(format_args!("standard output: {error}")));
        }
        Ok(()) if !has_events => say_that_nothing_fits(arguments),
        _ => {}
    }
    Ok(ExitCode::SUCCESS)
}

fn say_that_nothing_fits(arguments::Dump { channel, thread, from, to, .. }: &arguments::Dump) {
    let filters = [
        ("--channel", channel.is_some()),
        ("--thread", thread.is_some()),
        ("--from", from.is_some()),
        ("--to", to.is_some()),
    ];
    let given: Vec<_> =
        filters.iter().filter(|(_, is_given)| *is_given).map(|filter| filter.0).collect();
    if !given.is_empty() {
        tare_command::say(format_args!("no event matches {}", given.join(", ")));
    }
}

/// What is printed.
struct Filter<'arguments> {
    channel: Option<&'arguments Regex>,
    thread: Option<&'arguments Regex>,
    /// Nanoseconds since the Unix epoch; `None` for all times, known or not.
    times: Option<Range<i64>>,
}

impl<'arguments> Filter<'arguments> {
    fn of(arguments: &'arguments arguments::Dump, log: &Log) -> Result<Self, Failure> {
        let arguments::Dump { channel, thread, from, to, .. } = arguments;
        let times = if from.is_none() && to.is_none() {
            None
        } else {
            log.must_have_times()?;
            let began = log.began_ns().unwrap_or_default();
            let or =
                |moment: &Option<Moment>, else_| moment.map_or(else_, |moment| moment.of(began));
            Some(or(from, i64::MIN)..or(to, i64::MAX))
        };
        Ok(Self { channel: channel.as_ref(), thread: thread.as_ref(), times })
    }

    fn has(&self, row: &Row<'_>) -> bool {
        let is_its_channel = match row.what {
            What::Event { channel, .. } => {
                self.channel.is_none_or(|wanted| wanted.is_match(channel))
            }
            What::Loss { .. } => true,
            What::Gap { .. } => return false,
        };
        let is_its_thread = self.thread.is_none_or(|wanted| {
            wanted.is_match(row.thread) || wanted.is_match(&row.tid.to_string())
        });
        let is_its_time = self
            .times
            .as_ref()
            .is_none_or(|times| row.time_ns.is_some_and(|time| times.contains(&time)));
        is_its_channel && is_its_thread && is_its_time
    }
}

fn csv(row: &Row<'_>, line: &mut String) {
    let Row { time_ns, ticks, pid, tid, thread, what, .. } = row;
    let time = time_ns.map_or(String::new(), |time| time.to_string());
    let thread = quoted(thread);
    let _ = match what {
        What::Event { channel, payload, .. } => {
            let channel = quoted(channel);
            let payload = quoted(&text_of(payload));
            writeln!(line, "{time},{ticks},{pid},{tid},{thread},{channel},{payload},")
        }
        What::Loss { lost, .. } => {
            writeln!(line, "{time},{ticks},{pid},{tid},{thread},,,{lost}")
        }
        What::Gap { .. } => Ok(()),
    };
}

fn text_of(payload: &Payload<'_>) -> String {
    match payload {
        Payload::Number(number) => number.to_string(),
        Payload::Bytes(bytes) => String::from_utf8_lossy(bytes).into_owned(),
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// As RFC 4180 has it.
fn quoted(text: &str) -> String {
    if text.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_owned()
    }
}

fn jsonl(row: &Row<'_>, line: &mut String) {
    let Row { time_ns, ticks, pid, tid, thread, what, .. } = row;
    let mut object = serde_json::json!({
        "time_ns": time_ns, "ticks": ticks, "pid": pid, "tid": tid, "thread": thread,
    });
    match what {
        What::Event { channel, payload: Payload::Number(number), .. } => {
            object["channel"] = (*channel).into();
            object["payload"] = (*number).into();
        }
        What::Event { channel, payload: Payload::Bytes(bytes), .. } => {
            object["channel"] = (*channel).into();
            object["payload"] = String::from_utf8_lossy(bytes).into();
            if str::from_utf8(bytes).is_err() {
                object["payload_hex"] = hex(bytes).into();
            }
        }
        What::Loss { lost, first, last } => {
            object["lost"] = (*lost).into();
            object["first_ticks"] = (*first).into();
            object["last_ticks"] = (*last).into();
        }
        What::Gap { .. } => return,
    }
    let _ = writeln!(line, "{}", printable_json(&object.to_string()));
}
