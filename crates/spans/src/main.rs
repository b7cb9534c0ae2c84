// SPDX-License-Identifier: Apache-2.0
//! `tare-spans`: receives spans of traces over OTLP, and writes them as samples.

mod arguments;
mod attributes;
mod decode;
mod jaeger;
mod otlp;
mod output;
mod receive_command;
mod receiver;
mod rows;
mod run;
mod server;

use arguments::{Arguments, Command};
use std::process::ExitCode;
use tare_tables::{SAMPLES, describe};

fn main() -> ExitCode {
    tare_command::run(|arguments: Arguments| match arguments.command {
        Command::Receive(wanted) => receive_command::run(&wanted),
        Command::Run(wanted) => run::run(&wanted),
        Command::Decode(wanted) => decode::run(&wanted),
        Command::Schema { json } => {
            let text = if json {
                describe(&[(&*SAMPLES, &output::COLUMNS[..])]).to_string()
            } else {
                format!("{}: {}", SAMPLES.name, output::COLUMNS.join(", "))
            };
            tare_command::print(format_args!("{text}\n"))?;
            Ok(ExitCode::SUCCESS)
        }
    })
}
