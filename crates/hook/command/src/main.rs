// SPDX-License-Identifier: Apache-2.0
//! tare-hook: runs a program under the library-level hook.

mod arguments;
mod attach;
mod costs;
mod drain;
mod event_accounts;
mod event_file;
mod event_line;
mod event_times;
mod launch;
mod poll_interval;
mod rules_file;
mod segments;
mod session;
mod stats;
mod target;

use std::io::Write;
use std::process::ExitCode;
use tare_command::{Failure, ResultExt};
use tare_tables::{COSTS, EVENTS};

fn main() -> ExitCode {
    tare_command::run(|arguments: arguments::Arguments| match arguments.other {
        Some(arguments::Other::Schema { json }) => schema(json),
        None => session::run(arguments.run),
    })
}

fn schema(json: bool) -> Result<ExitCode, Failure> {
    let written = [(&*EVENTS, event_line::COLUMNS), (&*COSTS, costs::COLUMNS)];
    let text = if json {
        format!("{}\n", tare_tables::describe(&written))
    } else {
        written.map(|(table, columns)| format!("{}: {}\n", table.name, columns.join(", "))).concat()
    };
    std::io::stdout().write_all(text.as_bytes()).or_failed("standard output")?;
    Ok(ExitCode::SUCCESS)
}
