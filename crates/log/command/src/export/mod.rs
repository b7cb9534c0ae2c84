// SPDX-License-Identifier: Apache-2.0
//! Writes events as others read them: one file a format, behind one trait.

mod chrome;
mod cloudprofiler;
mod ctf;
mod otlp;
pub mod parquet;
mod perfetto;
mod protobuf;
mod trace_ids;

use crate::arguments::{self, Format};
use crate::reader::log::{Ended, Log, Row, What};
use crate::reader::spans::patterns::Pattern;
use crate::reader::spans::roles::Roles;
use crate::reader::spans::{SpanEvent, for_each_span_event};
use crate::same_file::{is_same, must_not_be};
use serde::Serialize;
use std::collections::HashMap;
use std::io::{self, BufWriter};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use tare_command::{Failure, NewFile, NewFolder, ResultExt, Signals, say};
use tare_log_file::ProcessInfo;

const SIGNALS: &[i32] = &[libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT];

/// Events between two looks whether a signal has come.
const BETWEEN_LOOKS: u64 = 1 << 12;

/// A file that is being written in some format. Events come as [`for_each_span_event`] has them.
pub trait Exporter {
    fn add(&mut self, row: &Row<'_>, span_event: SpanEvent<'_>) -> io::Result<()>;

    /// Writes what is left; nothing is added after that.
    fn finish(&mut self) -> io::Result<()>;
}

/// What all formats need of the file.
#[derive(Clone, Copy)]
pub struct Source<'log> {
    pub log: &'log Log,
    pub roles: &'log Roles,
    /// Channels whose numbers are states that go up and down, see [`is_counter`].
    pub counters: &'log [Pattern],
    /// Numbers that viewers tell processes apart by, see [`distinct`].
    pub pids: &'log [u32],
}

impl<'log> Source<'log> {
    /// Whether the channel's numbers are a quantity over time: its handler counts, or the user
    /// says so.
    fn is_counter(&self, process: usize, id: u16) -> bool {
        self.log.channel(process, id).is_some_and(|channel| {
            channel.handler.ends_with("counter")
                || self.counters.iter().any(|pattern| pattern.part(&channel.name).is_some())
        })
    }

    /// The program's name, without its folder.
    fn program(&self, process: usize) -> &'log str {
        let command = self.log.processes()[process].command.as_str();
        let program = command.split(' ').next().unwrap_or_default();
        program.rsplit('/').next().unwrap_or_default()
    }
}

/// What was written.
#[derive(Clone, Copy, Debug, Default, Serialize)]
struct Written {
    spans: u64,
    /// Beginnings whose end is not in the file, and ends whose beginning is not.
    unpaired: u64,
    events: u64,
    lost: u64,
    /// What is no row: events of threads that found no ring, events that programs were to write
    /// themselves, and round trips without an answer.
    unserved: u64,
    deferred: u64,
    unanswered: u64,
}

impl Written {
    fn count(&mut self, row: &Row<'_>, span_event: SpanEvent<'_>) {
        match span_event {
            SpanEvent::Begin(_) => {}
            SpanEvent::End(..) => self.spans += 1,
            SpanEvent::Cut(_) | SpanEvent::Left(_) | SpanEvent::Unbegun => self.unpaired += 1,
            SpanEvent::Event(_) => self.events += 1,
            SpanEvent::Loss => {
                if let What::Loss { lost, .. } = row.what {
                    self.lost = self.lost.saturating_add(lost);
                }
            }
        }
    }
}

/// Writes the events of a file in another format.
pub fn export(arguments: &arguments::Export) -> Result<ExitCode, Failure> {
    let log = Log::open(&arguments.files)?;
    let roles = Roles::of(&log, &arguments.pairs);
    let counters: Vec<Pattern> =
        arguments.counters.iter().map(|name| name.as_str().into()).collect();
    let has = |counter: &Pattern| {
        log.channels().any(|(_, channel)| counter.part(&channel.name).is_some())
    };
    for counter in counters.iter().filter(|counter| !has(counter)) {
        say(format_args!("--counter {counter}: no process has opened such a channel"));
    }
    let pids = distinct(log.processes());
    let source = Source { log: &log, roles: &roles, counters: &counters, pids: &pids };
    let out = arguments.out.clone().unwrap_or_else(|| beside(&arguments.files[0], arguments.to));
    let what = format!("--out {}", out.display());
    must_not_be(&arguments.files, &out, &what)?;
    log.must_have_times()?;
    // What is not whole is taken away when somebody ends this; a pipe ends by its reader.
    let is_pipe = out.metadata().is_ok_and(|status| !status.is_file() && !status.is_dir());
    let signals = (!is_pipe).then(|| Signals::take(SIGNALS));
    let signals = signals.transpose().or_failed("signals")?;
    let staged = Staged::create(&out, arguments.to).or_input(&what)?;
    let mut exporter = exporter(source, arguments.to, &staged).or_failed(&what)?;
    let mut written = Written {
        unserved: log.process_ends().unserved(),
        deferred: log.process_ends().deferred(),
        unanswered: log.process_ends().unanswered(),
        ..Written::default()
    };
    let mut rows = 0u64;
    let visited = for_each_span_event(&log, &roles, |row, span_event| {
        rows += 1;
        if rows.is_multiple_of(BETWEEN_LOOKS)
            && let Some(signal) = signals.as_ref().and_then(Signals::next)
        {
            return Err(Stopped::By(signal.number));
        }
        written.count(row, span_event);
        exporter.add(row, span_event).map_err(Stopped::For)
    });
    let finished = match visited {
        Err(Ended::Failed(failure)) => return Err(failure),
        Err(Ended::Enough(Stopped::By(signal))) => return Ok(ExitCode::from(128 + signal as u8)),
        Err(Ended::Enough(Stopped::For(error))) => Err(error),
        Ok(()) => exporter.finish(),
    };
    drop(exporter);
    finished.and_then(|()| staged.finish()).or_failed(&what)?;
    report(&out, written, arguments.json)?;
    Ok(ExitCode::SUCCESS)
}

/// What is there as a whole in the end, or not at all.
enum Staged {
    File(NewFile),
    Folder(NewFolder),
}

impl Staged {
    fn create(out: &Path, format: Format) -> io::Result<Self> {
        match format {
            Format::Ctf | Format::Cloudprofiler => NewFolder::create(out).map(Self::Folder),
            _ => NewFile::create(out).map(Self::File),
        }
    }

    fn finish(self) -> io::Result<()> {
        match self {
            Self::File(file) => file.finish(),
            Self::Folder(folder) => folder.finish(),
        }
    }
}

fn exporter<'all>(
    source: Source<'all>,
    format: Format,
    staged: &'all Staged,
) -> io::Result<Box<dyn Exporter + 'all>> {
    let file = match staged {
        Staged::File(file) => BufWriter::with_capacity(1 << 18, file.file()?),
        Staged::Folder(folder) if format == Format::Ctf => {
            return Ok(Box::new(ctf::Ctf::new(source, folder)?));
        }
        Staged::Folder(folder) => {
            return Ok(Box::new(cloudprofiler::Cloudprofiler::new(source, folder)?));
        }
    };
    Ok(match format {
        Format::Chrome => Box::new(chrome::Chrome::new(source, file)),
        Format::Otlp => Box::new(otlp::Otlp::new(source, file)),
        Format::Parquet => Box::new(parquet::Parquet::new(source, file)?),
        _ => Box::new(perfetto::Perfetto::new(source, file)),
    })
}

/// Why an export has stopped before its end.
enum Stopped {
    By(i32),
    For(io::Error),
}

fn report(out: &Path, written: Written, json: bool) -> Result<(), Failure> {
    // Where the result itself goes to stdout, nothing may stand behind it.
    if is_same(out, Path::new("/dev/stdout")) {
        return Ok(());
    }
    if json {
        return tare_command::print_json(serde_json::json!(written));
    }
    let Written { spans, unpaired, events, lost, unserved, .. } = written;
    tare_command::print(format_args!(
        "{}: {spans} spans, {events} other events, {unpaired} without a begin or an end, {lost} lost, \
         {unserved} unserved\n",
        out.display()
    ))
}

/// The kernel gives no process a greater number.
const MOST_PIDS: u32 = 1 << 22;

/// The number of each process, made greater where one of another host, or of another PID
/// namespace, has the same.
fn distinct(processes: &[ProcessInfo]) -> Vec<u32> {
    let mut known: HashMap<u32, HashMap<(&str, u64), usize>> = HashMap::new();
    let mut all = Vec::new();
    for info in processes {
        let same = known.entry(info.pid).or_default();
        let new = same.len();
        let index = *same.entry((info.host.as_str(), info.start)).or_insert(new);
        all.push(info.pid.wrapping_add(MOST_PIDS.wrapping_mul(index as u32)));
    }
    all
}

/// The name of FILE, with the format's suffix.
fn beside(file: &Path, to: Format) -> PathBuf {
    file.with_extension(match to {
        Format::Perfetto => "pftrace",
        Format::Chrome => "trace.json",
        Format::Otlp => "otlp.jsonl",
        Format::Parquet => "parquet",
        Format::Ctf => "ctf",
        Format::Cloudprofiler => "cloudprofiler",
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_of_lost_events_stop_at_the_largest_number() {
        let what = What::Loss { lost: u64::MAX - 1, first: 0, last: 0 };
        let row = Row::of_thread("", what);
        let mut written = Written::default();
        (0..2).for_each(|_| written.count(&row, SpanEvent::Loss));
        assert_eq!(written.lost, u64::MAX);
    }

    #[test]
    fn processes_of_two_hosts_with_one_number_are_told_apart() {
        let process = |pid, start, host: &str| ProcessInfo {
            pid,
            start,
            host: host.to_owned(),
            ..ProcessInfo::default()
        };
        // The third is the first again, with another copy of the library.
        let all = [
            process(1, 5, "a"),
            process(1, 5, "b"),
            process(1, 5, "a"),
            process(2, 5, "b"),
            process(1, 6, "b"),
        ];
        assert_eq!(distinct(&all), [1, 1 + MOST_PIDS, 1, 2, 1 + 2 * MOST_PIDS]);
    }
}
