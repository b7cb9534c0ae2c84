// SPDX-License-Identifier: Apache-2.0
//! `tare-load`: load generators that record every request.

mod address;
mod arguments;
mod budget;
mod capacity;
mod channel;
mod chunked;
mod clock;
mod connection;
mod connections;
mod crew;
mod epoll;
mod flow;
mod flow_arguments;
mod flow_report;
mod flows;
mod http;
mod http2;
mod http_message;
mod http_reply;
mod limits;
mod link;
mod live;
mod log;
mod options;
mod pace;
mod pool;
mod procfs;
mod readings;
mod recorder;
mod reply;
mod report;
mod requests;
mod response;
mod run;
mod sample;
mod serve;
mod session;
mod slices;
mod socket;
mod solo;
mod stop;
mod stream;
mod summary;
mod tables;
mod target;
mod tcp;
mod tcp_reply;
mod tickets;
mod tls;
mod url;
mod values;
mod wire;

use arguments::{Arguments, Command};
use flow_arguments::Transport;
use std::process::ExitCode;
use tare_tables::{MACHINE, SAMPLES, Table, describe};

fn main() -> ExitCode {
    tare_command::run(|arguments: Arguments| match arguments.command {
        Command::Http(http) => http::run(&http),
        Command::Tcp(tcp) => tcp::run(&tcp),
        Command::Udp(udp) => flows::run(Transport::Udp, &udp.flows),
        Command::Connect(connect) => flows::run(connect.transport, &connect.flows),
        Command::Serve(serve) => serve::run(&serve),
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
