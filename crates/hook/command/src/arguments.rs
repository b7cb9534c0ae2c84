// SPDX-License-Identifier: Apache-2.0
use clap::{Args, Parser, Subcommand, value_parser};
use std::ffi::OsString;
use std::path::PathBuf;

/// Runs a program under the library-level hook: every read and write on its sockets is
/// searched for keywords, and the hook measures its own time.
#[derive(Debug, Parser)]
#[command(
    name = "tare-hook",
    version,
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true
)]
pub struct Arguments {
    #[command(flatten)]
    pub run: Run,
    #[command(subcommand)]
    pub other: Option<Other>,
}

#[derive(Debug, Args)]
pub struct Run {
    /// Keywords to look for, and what to do about them (TOML; read again when the file
    /// changes and on SIGHUP)
    #[arg(long, value_name = "FILE")]
    pub rules: Option<PathBuf>,
    /// Write every match as a line of JSON
    #[arg(long, value_name = "FILE")]
    pub events: Option<PathBuf>,
    /// Print at the end, on stderr, what the hook saw and what it cost
    #[arg(long)]
    pub stats: bool,
    /// Write what the hook cost as an Arrow stream, at least every second and at the end
    #[arg(long, value_name = "FILE")]
    pub costs: Option<PathBuf>,
    /// Print the statistics as one JSON object
    #[arg(long)]
    pub json: bool,
    /// Take over a program, and all others under its hook, whose tare-hook has died: without
    /// --rules the last rules stay; ends with 0 when the programs have ended (their exit codes
    /// are not known), and on Ctrl-C, which leaves them running
    #[arg(long, value_name = "PID", conflicts_with = "command",
        value_parser = value_parser!(u32).range(1..=i64::from(i32::MAX)))]
    pub attach: Option<u32>,
    /// The program and its arguments
    #[arg(last = true, required_unless_present = "attach", value_name = "COMMAND")]
    pub command: Vec<OsString>,
}

#[derive(Debug, Subcommand)]
pub enum Other {
    /// Show the tables that this program writes
    Schema {
        /// As JSON
        #[arg(long)]
        json: bool,
    },
}
