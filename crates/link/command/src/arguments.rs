// SPDX-License-Identifier: Apache-2.0
use clap::{Args, Parser, Subcommand};
use std::ffi::OsString;
use std::path::PathBuf;

/// Run a program with its TCP connections carried over shared memory.
///
/// A connection uses shared memory if the program at its other end runs under `tare link` too, on
/// this machine and as the same user. All other connections stay TCP.
#[derive(Debug, Parser)]
#[command(
    name = "tare-link",
    bin_name = "tare link",
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
    /// Use shared memory from the first message on. Default: from the second message, or after
    /// 16 KiB
    #[arg(long)]
    pub eager: bool,
    /// At the end, print to stderr how many connections were linked, and how many bytes used shared
    /// memory
    #[arg(long)]
    pub stats: bool,
    /// At the end, print the statistics to stderr as one JSON object
    #[arg(long)]
    pub json: bool,
    /// Write the statistics to this Arrow stream, at least once per second and at the end
    #[arg(long, value_name = "FILE")]
    pub costs: Option<PathBuf>,
    /// The program and its arguments
    #[arg(last = true, required = true, value_name = "COMMAND")]
    pub command: Vec<OsString>,
}

#[derive(Debug, Subcommand)]
pub enum Other {
    /// Check whether a program can be linked, and print the reason if not
    ///
    /// The exit code is 0 if it can, and 1 if it cannot.
    Check {
        /// Print one JSON object
        #[arg(long)]
        json: bool,
        /// Its name or path
        program: OsString,
    },
    /// Show the tables that this program writes
    Schema {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
}
