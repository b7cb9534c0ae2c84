// SPDX-License-Identifier: Apache-2.0
//! `tare-load`: load generators that record every request.

mod arguments;
mod clock;
mod cpu_affinity;
mod file_limit;
mod fingerprint;
mod flows;
mod http;
mod http2;
mod measurement;
mod net;
mod protocol;
mod record;
mod requests;
mod run;
mod schedule;
mod stop;
mod target;
mod tcp;
mod workers;

use arguments::flows::FlowProtocol;
use arguments::{Arguments, Command};
use record::tables;
use std::process::ExitCode;
use tare_tables::{MACHINE, SAMPLES, Table, describe};

fn main() -> ExitCode {
    tare_command::run(|arguments: Arguments| match arguments.command {
        Command::Http(http) => http::run(&http),
        Command::Tcp(tcp) => tcp::run(&tcp),
        Command::Udp(udp) => flows::run(FlowProtocol::Udp, &udp.flows),
        Command::Connect(connect) => flows::run(connect.transport, &connect.flows),
        Command::Serve(serve) => flows::server::run(&serve),
        Command::Fingerprint(wanted) => fingerprint::run(&wanted),
        Command::Schema { json } => {
            let tables = [(&*SAMPLES, &tables::SAMPLES[..]), (&*MACHINE, &tables::MACHINE[..])];
            let text = if json {
                format!("{}\n", describe(&tables))
            } else {
                let line = |(table, columns): &(&Table, &[&str])| {
                    format!("{}: {}\n", table.name, columns.join(", "))
                };
                tables.iter().map(line).collect()
            };
            tare_command::print(text)?;
            Ok(ExitCode::SUCCESS)
        }
    })
}
