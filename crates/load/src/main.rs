// SPDX-License-Identifier: Apache-2.0
//! `tare-load`: load generators that record every request.

mod arguments;
mod budget;
mod capacity;
mod chunked;
mod clock;
mod connection;
mod crew;
mod epoll;
mod http;
mod limits;
mod live;
mod log;
mod pace;
mod pool;
mod procfs;
mod readings;
mod recorder;
mod report;
mod response;
mod sample;
mod session;
mod slices;
mod socket;
mod solo;
mod stop;
mod summary;
mod tables;
mod target;
mod url;
mod values;

use arguments::{Arguments, Command};
use std::process::ExitCode;
use tare_tables::{MACHINE, SAMPLES, describe};

fn main() -> ExitCode {
    tare_command::run(|arguments: Arguments| match arguments.command {
        Command::Http(http) => http::run(&http),
        Command::Schema { json } => {
            let tables = [(&*SAMPLES, &tables::SAMPLES[..]), (&*MACHINE, &tables::MACHINE[..])];
            if json {
                println!("{}", describe(&tables));
            } else {
                for (table, columns) in tables {
                    println!("{}: {}", table.name, columns.join(", "));
                }
            }
            Ok(ExitCode::SUCCESS)
        }
    })
}
