// SPDX-License-Identifier: Apache-2.0
use clap::{Args, Parser, Subcommand};
use std::ffi::OsString;

/// Runs a program whose TCP connections to other linked programs of this user on this host use
/// shared memory. All other connections stay TCP.
#[derive(Debug, Parser)]
#[command(
    name = "tare-link",
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
    /// Upgrade connections at the first message (default: at the second, or after 16 KiB)
    #[arg(long)]
    pub eager: bool,
    /// At the end, print to stderr the number of linked connections and the bytes that they carried
    #[arg(long)]
    pub stats: bool,
    /// Print the statistics as one JSON object
    #[arg(long)]
    pub json: bool,
    /// The program and its arguments
    #[arg(last = true, required = true, value_name = "COMMAND")]
    pub command: Vec<OsString>,
}

#[derive(Debug, Subcommand)]
pub enum Other {
    /// Check whether a program can be linked, and print the reason if not
    Check {
        /// Its name or path
        program: OsString,
    },
}
