// SPDX-License-Identifier: Apache-2.0
//! `tare spans receive`.

use crate::arguments::Receive;
use crate::receiver::Receiver;
use std::process::ExitCode;
use tare_command::{Failure, ResultExt, Signals, say};

pub fn run(wanted: &Receive) -> Result<ExitCode, Failure> {
    let signals = Signals::take(&[libc::SIGINT, libc::SIGTERM]).or_failed("signals")?;
    let sockets = [("--grpc", wanted.grpc), ("--http", wanted.http)];
    let receiver = Receiver::new(&sockets, &wanted.out, wanted.attributes.keys()?)?;
    let [grpc, http] = receiver.addresses()?[..] else { unreachable!("there are two sockets") };
    let name = wanted.out.display().to_string();
    say(format_args!(
        "receiving OTLP on {grpc} (gRPC) and {http} (HTTP), writing {name}; stop with Ctrl-C"
    ));
    let counts = receiver.receive(&signals, || Ok(signals.next().is_some()), |_| {})?;
    let summary = if wanted.json { format!("{}\n", counts.json()) } else { counts.text(&name) };
    tare_command::print(summary)?;
    Ok(ExitCode::SUCCESS)
}
