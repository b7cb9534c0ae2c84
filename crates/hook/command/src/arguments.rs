// SPDX-License-Identifier: Apache-2.0
use clap::{Args, Parser, Subcommand, value_parser};
use std::ffi::OsString;
use std::path::PathBuf;

/// Run a program under the library-level hook.
///
/// The hook searches all data that the program reads from and writes to sockets for the keywords
/// of --rules, and measures its own time.
#[derive(Debug, Parser)]
#[command(
    name = "tare-hook",
    bin_name = "tare hook",
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
    /// TOML file of keywords and the action for each. It is read again if it changes, and on SIGHUP
    #[arg(long, value_name = "FILE")]
    pub rules: Option<PathBuf>,
    /// Write one JSON line per match to this file
    #[arg(long, value_name = "FILE")]
    pub events: Option<PathBuf>,
    /// At the end, print to stderr what the hook saw and its cost
    #[arg(long)]
    pub stats: bool,
    /// Write the cost of the hook to this Arrow stream, at least once per second and at the end
    #[arg(long, value_name = "FILE")]
    pub costs: Option<PathBuf>,
    /// Print the statistics as one JSON object
    #[arg(long)]
    pub json: bool,
    /// Take over a running program, and all others with the same hook, after `tare hook` was
    /// killed.
    /// The last rules apply unless --rules is given. Exits with code 0 when the programs have
    /// exited (their exit codes are unknown), and on Ctrl-C, after which they continue
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
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
}
