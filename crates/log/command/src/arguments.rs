// SPDX-License-Identifier: Apache-2.0
use crate::pairs::Pair;
use crate::values::{Moment, whole_name};
use clap::{Args, Parser, Subcommand, ValueEnum};
use regex::Regex;
use std::ffi::OsString;
use std::path::PathBuf;
use tare_clock::Source;
use tare_log_file::Codec;

/// Collects the events that programs log into memory shared with it, and reads its files.
#[derive(Debug, Parser)]
#[command(
    name = "tare-log",
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
    /// Run a program, collect what it and its children log, and end as it ends
    Run(Run),
    /// Collect what programs log that are started with TARE_LOG=SOCKET, until Ctrl-C
    Collect(Collect),
    /// Print the events of a file
    Dump(Dump),
    /// Write the events of a file in another format
    Export(Export),
    /// Make a whole file of one that was cut off or damaged, or of a program's memory
    Recover(Recover),
    /// Print how long spans took, how often channels logged, and what was lost
    Stats(Stats),
    /// Relate the clocks of this host to those of another, so that events of both come in order
    Sync(Sync),
    /// Show what comes into a file at the moment: rates, losses and bytes by channel
    Top(Top),
    /// Print the folder of headers, libraries and jars
    Path,
    /// Show the tables that this program writes
    Schema {
        /// As JSON
        #[arg(long)]
        json: bool,
    },
}

#[derive(Debug, Args)]
pub struct Run {
    #[command(flatten)]
    pub collecting: Collecting,
    /// What times are read from, as with TARE_LOG_CLOCK [default: tsc]
    #[arg(long, value_enum)]
    pub clock: Option<Clock>,
    /// The program and its arguments
    #[arg(last = true, required = true, value_name = "COMMAND")]
    pub command: Vec<OsString>,
}

#[derive(Debug, Args)]
pub struct Collect {
    /// Where programs find the collector
    #[arg(long, value_name = "SOCKET")]
    pub socket: PathBuf,
    #[command(flatten)]
    pub collecting: Collecting,
}

/// How events are collected, whoever starts the programs.
#[derive(Debug, Args)]
pub struct Collecting {
    /// The file; what it has is kept, and more is added
    #[arg(long, short, value_name = "FILE", default_value = "tare.log")]
    pub out: PathBuf,
    /// How events are compressed whose channel does not say
    #[arg(long, value_enum, default_value_t = Compression::Zstd)]
    pub codec: Compression,
    /// Threads that compress; with 0 the one that collects does it
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u8).range(0..=64))]
    pub workers: u8,
    /// Write what collecting costs to this Arrow stream, anew every second
    #[arg(long, value_name = "FILE")]
    pub costs: Option<PathBuf>,
    /// What is done with events, by channel, process and thread; read again when it changes
    #[arg(long, value_name = "FILE")]
    pub rules: Option<PathBuf>,
    /// Print at the end, on stderr, what was collected and lost, as one JSON object
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct Recover {
    /// A file of events, a program's segment (/proc/PID/fd/N, a link to memfd:tare-log), or a
    /// copy of one
    #[arg(value_name = "FILE|SEGMENT")]
    pub from: PathBuf,
    /// The new file; FILE.recovered unless it is given, of a segment recovered.log
    #[arg(long, short, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// Print what was found as one JSON object
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
    /// The same, after all that stands before it
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
    /// Files of `tare log run` or `tare log collect`: the times of all are those of the first
    /// one's host, where `tare log sync` has related them
    #[arg(value_name = "FILE", required = true)]
    pub files: Vec<PathBuf>,
    /// How events are written
    #[arg(long, value_enum, default_value_t = Lines::Csv)]
    pub format: Lines,
    /// Only events of channels whose whole name matches; losses are of all channels
    #[arg(long, value_name = "REGEX", value_parser = whole_name)]
    pub channel: Option<Regex>,
    /// Only events and losses of threads whose whole name or number matches
    #[arg(long, value_name = "REGEX", value_parser = whole_name)]
    pub thread: Option<Regex>,
    /// Only from this time on: 10ms after the first event, or nanoseconds since the Unix epoch
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    pub from: Option<Moment>,
    /// Only before this time
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    pub to: Option<Moment>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum Format {
    /// ui.perfetto.dev
    Perfetto,
    /// chrome://tracing
    Chrome,
    /// OpenTelemetry: JSON lines, as its Collector writes them
    Otlp,
    /// Tables
    Parquet,
    /// babeltrace2, Trace Compass
    Ctf,
    /// Cloudprofiler's own tools
    Cloudprofiler,
}

#[derive(Debug, Args)]
pub struct Export {
    /// Files of `tare log run` or `tare log collect`: the times of all are those of the first
    /// one's host, where `tare log sync` has related them
    #[arg(value_name = "FILE", required = true)]
    pub files: Vec<PathBuf>,
    /// Who is to read it
    #[arg(long, value_enum, value_name = "FORMAT")]
    pub to: Format,
    /// The file, for ctf and cloudprofiler a new folder [default: FILE with the format's suffix]
    #[arg(long, short, value_name = "OUT")]
    pub out: Option<PathBuf>,
    /// Channels that begin and end spans, besides the usual ones (NAME> and NAME<, NAME in and
    /// NAME out ...); * stands for any text, the same in both
    #[arg(long = "pair", value_name = "BEGIN=END")]
    pub pairs: Vec<Pair>,
    /// Channels whose numbers are a quantity over time; * stands for any text
    #[arg(long = "counter", value_name = "CHANNEL")]
    pub counters: Vec<String>,
    /// Print what was written as one JSON object
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct Stats {
    /// Files of `tare log run` or `tare log collect`: the times of all are those of the first
    /// one's host, where `tare log sync` has related them
    #[arg(value_name = "FILE", required = true)]
    pub files: Vec<PathBuf>,
    /// Channels that begin and end spans, as with `export`
    #[arg(long = "pair", value_name = "BEGIN=END")]
    pub pairs: Vec<Pair>,
    /// Draw, too, which spans took how long within which: a flame graph, as SVG
    #[arg(long, value_name = "OUT")]
    pub flame: Option<PathBuf>,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct Sync {
    /// Where `tare log sync --serve` runs: a name or an address, with :PORT if it has another
    #[arg(value_name = "HOST", required_unless_present = "serve")]
    pub host: Option<String>,
    /// Let other hosts ask for the time of this one, at this address, until Ctrl-C; 0.0.0.0 is
    /// all that this host has, the port 52525 unless it is given
    #[arg(long, value_name = "ADDRESS[:PORT]", conflicts_with_all = ["host", "file", "json"])]
    pub serve: Option<String>,
    /// Add what was found to this file of events, for `dump`, `export` and `stats`
    #[arg(long, value_name = "FILE")]
    pub file: Option<PathBuf>,
    /// Print what was found as one JSON object
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct Top {
    /// The file that a collector writes to
    #[arg(value_name = "FILE", default_value = "tare.log")]
    pub file: PathBuf,
    /// Print one JSON object a second
    #[arg(long)]
    pub json: bool,
    /// Look for one second, print, and end
    #[arg(long)]
    pub once: bool,
}
