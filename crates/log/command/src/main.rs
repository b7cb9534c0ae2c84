// SPDX-License-Identifier: Apache-2.0
//! tare-log: collects what programs log, and reads it.

mod arguments;
mod collect;
mod door;
mod dump;
mod log;
mod orphans;
mod output;
mod press;
mod ring;
mod run;
mod target;
mod times;

use arguments::Command;
use std::path::Path;
use std::process::ExitCode;
use tare_command::{Failure, ResultExt};

fn main() -> ExitCode {
    tare_command::run(|arguments: arguments::Arguments| match arguments.command {
        Command::Run(run) => run::run(&run),
        Command::Collect(collect) => run::collect(&collect),
        Command::Dump(dump) => dump::dump(&dump),
        Command::Path => path(),
        Command::Schema { json } => schema(json),
    })
}

/// This program stands in `bin` beside `lib` and `include`.
fn path() -> Result<ExitCode, Failure> {
    let program = std::env::current_exe().or_failed("the path of this program")?;
    let folder = program.parent().and_then(Path::parent).unwrap_or(Path::new("/"));
    tare_command::print(format_args!("{}\n", folder.display()))?;
    Ok(ExitCode::SUCCESS)
}

/// It writes no table: its files are made of blocks.
fn schema(json: bool) -> Result<ExitCode, Failure> {
    if json {
        tare_command::print(format_args!("{}\n", tare_tables::describe(&[])))?;
    }
    Ok(ExitCode::SUCCESS)
}
