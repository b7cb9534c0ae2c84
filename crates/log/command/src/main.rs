// SPDX-License-Identifier: Apache-2.0
//! tare-log: collects what programs log, and reads it.

mod argument_values;
mod arguments;
mod collector;
mod epoll;
mod export;
mod format;
mod log_file;
mod procfs;
mod reader;
mod recover;
mod same_file;
mod show;
mod sync;

use arguments::Command;
use collector::accept::receiver;
use collector::{costs, run};
use show::{dump, stats, top};
use std::path::Path;
use std::process::ExitCode;
use tare_command::{Failure, ResultExt};
use tare_tables::{COSTS, SAMPLES, describe};

fn main() -> ExitCode {
    if std::env::args_os().next().is_some_and(|name| name == receiver::NAME) {
        return receiver::run();
    }
    tare_command::run(|arguments: arguments::Arguments| match arguments.command {
        Command::Run(run) => run::run(&run),
        Command::Collect(collect) => run::collect(&collect),
        Command::Dump(dump) => dump::dump(&dump),
        Command::Export(export) => export::export(&export),
        Command::Recover(recover) => recover::recover(&recover),
        Command::Stats(arguments) => stats::stats(&arguments),
        Command::Sync(arguments) => sync::sync(&arguments),
        Command::Top(arguments) => top::top(&arguments),
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

fn schema(json: bool) -> Result<ExitCode, Failure> {
    let written = [(&*SAMPLES, export::parquet::SAMPLES), (&*COSTS, costs::COLUMNS)];
    let text = if json {
        format!("{}\n", describe(&written))
    } else {
        written.map(|(table, columns)| format!("{}: {}\n", table.name, columns.join(", "))).concat()
    };
    tare_command::print(format_args!("{text}"))?;
    Ok(ExitCode::SUCCESS)
}
