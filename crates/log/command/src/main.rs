// SPDX-License-Identifier: Apache-2.0
//! tare-log: collects what programs log, and reads it.

mod arguments;
mod bridge;
mod budget;
mod collect;
mod costs;
mod door;
mod dump;
mod epoll;
mod export;
mod flame;
mod fox;
mod human;
mod kept;
mod leaving;
mod limit;
mod live_losses;
mod log;
mod memory;
mod naming;
mod nesting;
mod orphans;
mod output;
mod pairs;
mod payer;
mod porter;
mod press;
mod program;
mod receiver;
mod receivers;
mod recover;
mod ring;
mod rule_book;
mod rules;
mod ruling;
mod run;
mod salvage;
mod same_file;
mod screen;
mod seen;
mod slices;
mod socket;
mod spans;
mod stats;
mod sync;
mod tail;
mod target;
mod timelines;
mod timer;
mod times;
mod top;
mod totals;
mod value;
mod values;
mod virtual_threads;
mod words;

use arguments::Command;
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
