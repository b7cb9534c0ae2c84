// SPDX-License-Identifier: Apache-2.0
//! tare-map: who talks to whom on this host.

mod arguments;
mod show;
mod source;

use arguments::{Arguments, Command};
use std::process::ExitCode;
use tare_command::Failure;
use tare_tables::{EDGES, describe};

fn main() -> ExitCode {
    tare_command::run(|arguments: Arguments| match arguments.command {
        Some(Command::Schema { json }) => schema(json),
        None => show::watch::run(&arguments),
    })
}

fn schema(json: bool) -> Result<ExitCode, Failure> {
    let names: Vec<&str> = EDGES.columns.iter().map(|column| column.name.as_str()).collect();
    let text = if json {
        describe(&[(&*EDGES, &names[..])]).to_string()
    } else {
        format!("{}: {}", EDGES.name, names.join(", "))
    };
    tare_command::print(format_args!("{text}\n"))?;
    Ok(ExitCode::SUCCESS)
}
