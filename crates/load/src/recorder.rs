// SPDX-License-Identifier: Apache-2.0
//! The thread that does not send: it empties the logs into the files, the summaries
//! and the live line.

use crate::live::Live;
use crate::readings::Measured;
use crate::sample::Sample;
use crate::summary::Summary;
use crate::tables::{write_measured, write_sample};
use rtrb::Consumer;
use std::io::ErrorKind;
use std::path::Path;
use std::thread::JoinHandle;
use std::time::Duration;
use tare_command::Failure;
use tare_tables::{Table, Writer};

/// Well below the 100 ms after which a batch has to be on the disk.
const PERIOD: Duration = Duration::from_millis(25);

/// One file that is written, if it was asked for.
pub struct Output {
    /// With the option and its value, for errors.
    writer: Option<(Writer, String)>,
}

pub struct Recorder {
    pub samples: Output,
    pub machine: Output,
    pub logs: Vec<Consumer<Sample>>,
    pub measured: Consumer<Measured>,
    pub summaries: Vec<Summary>,
    pub live: Live,
}

impl Output {
    /// The file that `option` names, if any.
    pub fn create(
        option: &str,
        path: Option<&Path>,
        table: &Table,
        columns: &[&str],
    ) -> Result<Self, Failure> {
        let writer = match path {
            None => None,
            Some(path) => {
                let shown = format!("{option} {}", path.display());
                let writer = Writer::create(path, table, columns).map_err(|error| {
                    let what = format!("{shown}: {error}; name a file that can be written");
                    match error.kind() {
                        ErrorKind::PermissionDenied
                        | ErrorKind::NotFound
                        | ErrorKind::NotADirectory
                        | ErrorKind::IsADirectory
                        | ErrorKind::ReadOnlyFilesystem => Failure::input(what),
                        _ => Failure::work(what),
                    }
                })?;
                Some((writer, shown))
            }
        };
        Ok(Self { writer })
    }

    fn write(
        &mut self,
        write: impl FnOnce(&mut Writer) -> std::io::Result<()>,
    ) -> Result<(), Failure> {
        let Some((writer, shown)) = &mut self.writer else { return Ok(()) };
        write(writer).map_err(|error| {
            Failure::work(format_args!(
                "{shown}: {error}; the {} rows before it are safe",
                writer.rows_written()
            ))
        })
    }

    fn finish(&mut self) -> Result<(), Failure> {
        self.write(Writer::flush)?;
        let Some((writer, shown)) = self.writer.take() else { return Ok(()) };
        writer.finish().map_err(|error| Failure::work(format_args!("{shown}: {error}")))
    }
}

impl Recorder {
    /// Records until all the threads have ended and their logs are empty.
    pub fn record(&mut self, threads: &[JoinHandle<()>]) -> Result<(), Failure> {
        loop {
            let over = threads.iter().all(JoinHandle::is_finished);
            self.empty_logs()?;
            self.samples.write(Writer::flush_if_due)?;
            self.machine.write(Writer::flush_if_due)?;
            if over {
                self.live.end();
                self.samples.finish()?;
                return self.machine.finish();
            }
            self.live.show(&self.summaries);
            std::thread::park_timeout(PERIOD);
        }
    }

    fn empty_logs(&mut self) -> Result<(), Failure> {
        while let Ok(measured) = self.measured.pop() {
            let summary = &mut self.summaries[usize::from(measured.target)];
            summary.duration += measured.duration;
            self.machine.write(|writer| write_measured(writer, &summary.name, &measured))?;
        }
        for log in &mut self.logs {
            for _ in 0..log.slots() {
                let Ok(sample) = log.pop() else { break };
                let summary = &mut self.summaries[usize::from(sample.target)];
                let seq = summary.requests.cast_signed();
                self.samples.write(|writer| write_sample(writer, &summary.name, seq, &sample))?;
                summary.add(&sample);
                self.live.add(&sample);
            }
        }
        Ok(())
    }
}
