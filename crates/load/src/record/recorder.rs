// SPDX-License-Identifier: Apache-2.0
//! The thread that does not send: it empties the queues into the files, the summaries
//! and the live line.

use super::live::Live;
use super::readings::Measured;
use super::sample::Sample;
use super::summary::Summary;
use super::tables::{write_measured, write_sample};
use crate::stop;
use rtrb::Consumer;
use std::io::ErrorKind;
use std::path::Path;
use std::thread::JoinHandle;
use std::time::Duration;
use tare_command::{Failure, open_in_place};
use tare_tables::{Table, Vacant, Writer};

/// Well below the 100 ms after which a batch has to be on the disk.
const PERIOD: Duration = Duration::from_millis(25);

/// One file that will be written, if it was asked for; what stands in it stands there still.
pub struct PlannedTable {
    /// With the option and its value, for errors.
    vacant: Option<(Vacant, String)>,
}

/// One file that is written, if it was asked for.
#[derive(Default)]
pub struct Output {
    /// With the option and its value, for errors; none any more after an error.
    writer: Option<(Writer, String)>,
    failure: Option<Failure>,
}

pub struct Recorder {
    pub samples: Output,
    pub machine: Output,
    pub queues: Vec<Consumer<Sample>>,
    pub measured: Consumer<Measured>,
    pub summaries: Vec<Summary>,
    pub live: Live,
}

impl PlannedTable {
    /// The file that `option` names, if any.
    pub fn open(option: &str, path: Option<&Path>) -> Result<Self, Failure> {
        let Some(path) = path else { return Ok(Self { vacant: None }) };
        let shown = format!("{option} {}", path.display());
        match open_in_place(path).and_then(Vacant::of) {
            Ok(vacant) => Ok(Self { vacant: Some((vacant, shown)) }),
            Err(error) => Err(unwritable(&shown, &error)),
        }
    }

    /// Empties the file.
    pub fn begin(self, table: &Table, columns: &[&str]) -> Result<Output, Failure> {
        let Some((vacant, shown)) = self.vacant else { return Ok(Output::default()) };
        match vacant.begin(table, columns) {
            Ok(writer) => Ok(Output { writer: Some((writer, shown)), failure: None }),
            Err(error) => Err(unwritable(&shown, &error)),
        }
    }
}

fn unwritable(shown: &str, error: &std::io::Error) -> Failure {
    let what = format!("{shown}: {error}; give a writable file");
    match error.kind() {
        ErrorKind::PermissionDenied
        | ErrorKind::NotFound
        | ErrorKind::NotADirectory
        | ErrorKind::IsADirectory
        | ErrorKind::ReadOnlyFilesystem => Failure::input(what),
        _ => Failure::work(what),
    }
}

impl Output {
    /// A file that cannot be written ends the work.
    pub fn write(&mut self, write: impl FnOnce(&mut Writer) -> std::io::Result<()>) {
        let Some((writer, shown)) = &mut self.writer else { return };
        if let Err(error) = write(writer) {
            self.failure = Some(Failure::work(format_args!(
                "{shown}: {error}; the first {} rows were written",
                writer.rows_written()
            )));
            self.writer = None;
            stop::ask();
        }
    }

    pub fn finish(mut self) -> Result<(), Failure> {
        self.write(Writer::flush);
        match (self.failure, self.writer) {
            (Some(failure), _) => Err(failure),
            (None, None) => Ok(()),
            (None, Some((writer, shown))) => {
                writer.finish().map_err(|error| Failure::work(format_args!("{shown}: {error}")))
            }
        }
    }
}

impl Recorder {
    /// Records until all the threads have ended and their queues are empty; what came of each
    /// target. If one of the files cannot be written the other one still gets all of its rows.
    pub fn record(mut self, threads: &[JoinHandle<()>]) -> Result<Vec<Summary>, Failure> {
        loop {
            let over = threads.iter().all(JoinHandle::is_finished);
            self.empty_queues();
            if over {
                break;
            }
            self.samples.write(Writer::flush_if_due);
            self.machine.write(Writer::flush_if_due);
            self.live.show(&self.summaries);
            std::thread::park_timeout(PERIOD);
        }
        self.live.end();
        let (samples, machine) = (self.samples.finish(), self.machine.finish());
        samples.and(machine).map(|()| self.summaries)
    }

    fn empty_queues(&mut self) {
        while let Ok(measured) = self.measured.pop() {
            let summary = &mut self.summaries[usize::from(measured.target)];
            summary.duration += measured.duration;
            self.machine.write(|writer| write_measured(writer, &summary.name, &measured));
        }
        for queue in &mut self.queues {
            for _ in 0..queue.slots() {
                let Ok(sample) = queue.pop() else { break };
                let summary = &mut self.summaries[usize::from(sample.target)];
                let seq = summary.requests.cast_signed();
                self.samples.write(|writer| write_sample(writer, &summary.name, seq, &sample));
                summary.add(&sample);
                self.live.add(&sample);
            }
        }
    }
}
