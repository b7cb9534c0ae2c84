// SPDX-License-Identifier: Apache-2.0
//! `tare-load connect` and `tare-load udp`: many flows to servers that send back what they receive.

pub mod flow;
mod load;
pub mod report;
pub mod server;

use crate::arguments::flows::{Flavor, FlowProtocol, Flows};
use crate::arguments::values::{self, CpuList};
use crate::cpu_affinity;
use crate::file_limit;
use crate::record::recorder::PlannedTable;
use crate::record::tables;
use crate::stop;
use load::Load;
use std::net::SocketAddr;
use std::process::ExitCode;
use tare_command::{Failure, ResultExt};
use tare_tables::SAMPLES;

/// Open files beside those of flows.
const OTHER_FILES: usize = 16;

pub fn run(transport: FlowProtocol, arguments: &Flows) -> Result<ExitCode, Failure> {
    let peers = peers(arguments)?;
    let flavor = arguments.flavor.unwrap_or(match transport {
        FlowProtocol::Tcp => Flavor::Persistent,
        FlowProtocol::Udp => Flavor::Ephemeral,
    });
    let most = file_limit::raise_open_files().saturating_sub(OTHER_FILES);
    let persistent = arguments.connections as usize * peers.len();
    if flavor == Flavor::Persistent && persistent > most {
        return Err(Failure::input(format_args!(
            "--connections {}: with {} servers, {persistent} open files are needed, but the limit \
             leaves {most}. Raise the limit (ulimit -n), or lower --connections",
            arguments.connections,
            peers.len()
        )));
    }
    let samples = PlannedTable::open("--out", arguments.out.as_deref())?;
    if let Some(CpuList(cpus)) = &arguments.cpu {
        cpu_affinity::pin(cpus).or_input("--cpu: the generator cannot run on these CPUs")?;
    }
    stop::catch_signals().or_failed("signals cannot be caught")?;
    let mut load = Load::new(transport, flavor, arguments, peers, most)?;
    load.samples = samples.begin(&SAMPLES, &tables::SAMPLES)?;
    load.carry_out()?;
    load.finish()
}

/// The servers of the command line and of the file, each once looked up.
fn peers(arguments: &Flows) -> Result<Vec<SocketAddr>, Failure> {
    let mut addresses = arguments.address.clone();
    let file = values::read(arguments.addrs_file.as_deref(), "--addrs-file")?;
    for word in String::from_utf8_lossy(&file.unwrap_or_default()).split_whitespace() {
        let address = values::address(word)
            .map_err(|why| Failure::input(format_args!("--addrs-file: '{word}': {why}")))?;
        addresses.push(address);
    }
    if addresses.is_empty() {
        return Err(Failure::input("--addrs-file: the file has no address; add lines HOST:PORT"));
    }
    let find = |address: &crate::arguments::address::Address| {
        let found = address.resolve().or_failed(format_args!("{address} was not found"))?;
        Ok(found[0])
    };
    addresses.iter().map(find).collect()
}
