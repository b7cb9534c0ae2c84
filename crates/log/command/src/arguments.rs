// SPDX-License-Identifier: Apache-2.0
use crate::argument_values::{Moment, whole_name};
use crate::reader::spans::patterns::SpanPattern;
use clap::{Args, Parser, Subcommand, ValueEnum};
use regex::Regex;
use std::ffi::OsString;
use std::path::PathBuf;
use tare_clock::Source;
use tare_log_file::Codec;

/// Record events of programs through shared memory, and read the recorded files.
#[derive(Debug, Parser)]
#[command(
    name = "tare-log",
    bin_name = "tare log",
    version,
    subcommand_required = true,
    arg_required_else_help = true,
    disable_help_subcommand = true
)]
pub struct Arguments {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run a program and record its events and its children's; exit with its exit code
    Run(Run),
    /// Record the events of programs that run with TARE_LOG=SOCKET, until Ctrl-C
    Collect(Collect),
    /// Print the events of a file
    Dump(Dump),
    /// Write the events of a file in another format
    Export(Export),
    /// Write a readable file from a truncated or damaged one, or from a program's memory
    Recover(Recover),
    /// Print durations of spans, events per channel, and losses
    Stats(Stats),
    /// Measure the clock difference to another host, so that events of both can be ordered
    Sync(Sync),
    /// Show live rates, losses and bytes per channel of a file that is being written
    Top(Top),
    /// Print the folder with the headers, libraries and jars
    Path,
    /// Print the tables and columns that this program writes
    Schema {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
}

#[derive(Debug, Args)]
pub struct Run {
    #[command(flatten)]
    pub collecting: Collecting,
    /// Clock of event times, as in TARE_LOG_CLOCK [default: tsc]
    #[arg(long, value_enum)]
    pub clock: Option<Clock>,
    /// The program and its arguments
    #[arg(last = true, required = true, value_name = "COMMAND")]
    pub command: Vec<OsString>,
}

#[derive(Debug, Args)]
pub struct Collect {
    /// Path of the socket; programs get it as TARE_LOG
    #[arg(long, value_name = "SOCKET")]
    pub socket: PathBuf,
    #[command(flatten)]
    pub collecting: Collecting,
}

/// How events are collected, whoever starts the programs.
#[derive(Debug, Args)]
pub struct Collecting {
    /// Append events to this file
    #[arg(long, short, value_name = "FILE", default_value = "tare.log")]
    pub out: PathBuf,
    /// Default codec for channels that set none
    #[arg(long, value_enum, default_value_t = Compression::Zstd)]
    pub codec: Compression,
    /// Number of compression threads; with 0 the collecting thread compresses
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u8).range(0..=64))]
    pub workers: u8,
    /// Write the cost of collecting to this Arrow stream, once per second
    #[arg(long, value_name = "FILE")]
    pub costs: Option<PathBuf>,
    /// Rules: what to do with events, by channel, process and thread. A changed file is read again
    #[arg(long, value_name = "FILE")]
    pub rules: Option<PathBuf>,
    /// At the end, print counts of collected and lost events to stderr, as one JSON object
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct Recover {
    /// A file of events; or the segment of a program (/proc/PID/fd/N, a link to memfd:tare-log)
    /// or a copy of it
    #[arg(value_name = "FILE|SEGMENT")]
    pub from: PathBuf,
    /// The new file [default: FILE.recovered; recovered.log for a segment]
    #[arg(long, short, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// Print the result as one JSON object
    #[arg(long)]
    pub json: bool,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum Compression {
    None,
    Zstd,
    Lz4,
    Lzo1x,
}

impl From<Compression> for Codec {
    fn from(compression: Compression) -> Self {
        match compression {
            Compression::None => Self::None,
            Compression::Zstd => Self::Zstd,
            Compression::Lz4 => Self::Lz4,
            Compression::Lzo1x => Self::Lzo1x,
        }
    }
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum Clock {
    /// The processor's tick counter
    Tsc,
    /// The tick counter, read after all earlier instructions have finished (rdtscp)
    Tscp,
    /// The kernel's CLOCK_MONOTONIC_RAW
    Monotonic,
}

impl From<Clock> for Source {
    fn from(clock: Clock) -> Self {
        match clock {
            Clock::Tsc => Self::Tsc,
            Clock::Tscp => Self::Tscp,
            Clock::Monotonic => Self::Monotonic,
        }
    }
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum Lines {
    Csv,
    Jsonl,
}

#[derive(Debug, Args)]
pub struct Dump {
    /// Files of `tare log run` or `tare log collect`. Times of several files are converted to the
    /// clock of the first file's host, if `tare log sync` has compared the hosts
    #[arg(value_name = "FILE", default_value = "tare.log")]
    pub files: Vec<PathBuf>,
    /// Output format
    #[arg(long, value_enum, default_value_t = Lines::Csv)]
    pub format: Lines,
    /// Print one JSON object per event, as with --format jsonl
    #[arg(long, conflicts_with = "format")]
    pub json: bool,
    /// Print only events of channels with a full name that matches; losses of all channels are printed
    #[arg(long, value_name = "REGEX", value_parser = whole_name)]
    pub channel: Option<Regex>,
    /// Print only events and losses of threads with a full name or number that matches
    #[arg(long, value_name = "REGEX", value_parser = whole_name)]
    pub thread: Option<Regex>,
    /// Print only from this time on: 10ms after the first event, or nanoseconds since the epoch
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    pub from: Option<Moment>,
    /// Print only before this time
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    pub to: Option<Moment>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// For ui.perfetto.dev
    Perfetto,
    /// For chrome://tracing
    Chrome,
    /// OpenTelemetry JSON lines, as the OpenTelemetry Collector writes them
    Otlp,
    /// A table of samples
    Parquet,
    /// For babeltrace2 and Trace Compass
    Ctf,
    /// For the tools of Cloudprofiler
    Cloudprofiler,
}

#[derive(Debug, Args)]
pub struct Export {
    /// Files of `tare log run` or `tare log collect`. Times of several files are converted to the
    /// clock of the first file's host, if `tare log sync` has compared the hosts
    #[arg(value_name = "FILE", default_value = "tare.log")]
    pub files: Vec<PathBuf>,
    /// Output format
    #[arg(long, value_enum, value_name = "FORMAT")]
    pub to: Format,
    /// The new file; for ctf and cloudprofiler a new folder [default: FILE with the format's
    /// suffix]
    #[arg(long, short, value_name = "OUT")]
    pub out: Option<PathBuf>,
    /// Channels that begin and end spans, in addition to the known pairs (NAME> and NAME<, NAME in
    /// and NAME out ...). * matches any text, the same text in both
    #[arg(long = "pair", value_name = "BEGIN=END")]
    pub pairs: Vec<SpanPattern>,
    /// Channels with numbers that are a quantity over time; * matches any text
    #[arg(long = "counter", value_name = "CHANNEL")]
    pub counters: Vec<String>,
    /// Print the paths and counts as one JSON object
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct Stats {
    /// Files of `tare log run` or `tare log collect`. Times of several files are converted to the
    /// clock of the first file's host, if `tare log sync` has compared the hosts
    #[arg(value_name = "FILE", default_value = "tare.log")]
    pub files: Vec<PathBuf>,
    /// Channels that begin and end spans, as in `tare log export`
    #[arg(long = "pair", value_name = "BEGIN=END")]
    pub pairs: Vec<SpanPattern>,
    /// Also write a flame graph of the spans to this SVG file
    #[arg(long, value_name = "OUT")]
    pub flame: Option<PathBuf>,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct Sync {
    /// Host that runs `tare log sync --serve`: name or address, with :PORT if it is not 52525
    #[arg(value_name = "HOST", required_unless_present = "serve")]
    pub host: Option<String>,
    /// Answer time requests of other hosts at this address, until Ctrl-C. 0.0.0.0 listens on all
    /// addresses; the default port is 52525
    #[arg(long, value_name = "ADDRESS[:PORT]", conflicts_with_all = ["host", "file", "json"])]
    pub serve: Option<String>,
    /// Add the result to this file of events, for `dump`, `export` and `stats`
    #[arg(long, value_name = "FILE")]
    pub file: Option<PathBuf>,
    /// Print the result as one JSON object
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct Top {
    /// The file that a collector is writing
    #[arg(value_name = "FILE", default_value = "tare.log")]
    pub file: PathBuf,
    /// Print one JSON object per second
    #[arg(long)]
    pub json: bool,
    /// Observe for one second, print, and exit
    #[arg(long)]
    pub once: bool,
}
