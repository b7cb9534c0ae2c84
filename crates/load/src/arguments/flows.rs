// SPDX-License-Identifier: Apache-2.0
//! The options of loads that only make flows: bytes to servers that send them back.

use super::address::Address;
use super::values::{self, CpuList};
use clap::{Args, ValueEnum};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

pub const UDP_EXAMPLES: &str = "\
The servers have to send every message back, as tare load serve udp does.

Examples:
  A server, and 10,000 datagrams per second to it, each from a new source port:
    tare load serve udp --listen 127.0.0.1:9100
    tare load udp 127.0.0.1:9100 --rate 10000
  A hundred sockets that stay, 50 datagrams per second from each, recorded:
    tare load udp 127.0.0.1:9100 --flavor persistent --connections 100 --rate 50 \\
      --out samples.arrow";

pub const CONNECT_EXAMPLES: &str = "\
The servers have to send every message back, as tare load serve all does.

Examples:
  5,000 connections per second to each of two servers:
    tare load connect tcp 127.0.0.1:9100 127.0.0.1:9101 --flavor ephemeral --rate 5000
  A thousand connections that stay, five messages per second on each, as JSON lines:
    tare load connect tcp 127.0.0.1:9100 --connections 1000 --rate 5 --jsonlines";

pub const SERVE_EXAMPLES: &str = "\
Examples:
  TCP and UDP on two addresses, until Ctrl-C:
    tare load serve all --listen 127.0.0.1:9100,127.0.0.1:9101
  For a minute, on a free port, which is printed:
    tare load serve tcp --listen 127.0.0.1:0 --duration 60s";

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum FlowProtocol {
    Tcp,
    Udp,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Served {
    Tcp,
    Udp,
    /// Both, on the same ports.
    All,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Flavor {
    /// --connections stay open, and each sends --rate messages per second.
    Persistent,
    /// Each message has a socket of its own, --rate per second to each server.
    Ephemeral,
}

#[derive(Debug, Args)]
pub struct Flows {
    /// The servers; all of them have load at the same time.
    #[arg(value_name = "HOST:PORT", required_unless_present = "addrs_file", value_parser = values::address)]
    pub address: Vec<Address>,

    /// A file with more servers, separated by spaces or newlines.
    #[arg(long, value_name = "FILE")]
    pub addrs_file: Option<PathBuf>,

    /// How sockets are used. [default: persistent; UDP: ephemeral]
    #[arg(short, long, value_enum)]
    pub flavor: Option<Flavor>,

    /// Connections to each server, if they are persistent.
    #[arg(short, long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub connections: u32,

    /// Messages per second: of each connection (persistent), or to each server (ephemeral).
    #[arg(short, long, value_name = "R", default_value = "100", value_parser = values::rate)]
    pub rate: f64,

    /// How long messages are sent.
    #[arg(short, long, value_name = "TIME", default_value = "10s", value_parser = values::duration)]
    pub duration: Duration,

    /// Time between two reports.
    #[arg(short, long, value_name = "TIME", default_value = "5s", value_parser = values::duration)]
    pub interval: Duration,

    /// Bytes of a message.
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..=65_507))]
    pub message_bytes: u32,

    /// When a message without its complete reply counts as failed.
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = values::duration)]
    pub timeout: Duration,

    /// Print only the report at the end.
    #[arg(long)]
    pub show_only_results: bool,

    /// One line for all servers of a host in the report at the end.
    #[arg(long, requires = "show_only_results")]
    pub merge_results_each_host: bool,

    /// Print reports as JSON, one object per line and server.
    #[arg(long, conflicts_with = "json")]
    pub jsonlines: bool,

    /// Print one JSON object at the end, and nothing before.
    #[arg(long)]
    pub json: bool,

    /// Write every message to this Arrow stream.
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,

    /// CPUs on which the generator runs: 0, or 0,2.
    #[arg(long, value_name = "N", value_parser = values::cpus)]
    pub cpu: Option<CpuList>,
}

#[derive(Debug, Args)]
#[command(after_help = CONNECT_EXAMPLES)]
pub struct Connect {
    /// The protocol.
    #[arg(value_enum)]
    pub transport: FlowProtocol,

    #[command(flatten)]
    pub flows: Flows,
}

#[derive(Debug, Args)]
#[command(after_help = UDP_EXAMPLES)]
pub struct Udp {
    #[command(flatten)]
    pub flows: Flows,
}

#[derive(Debug, Args)]
#[command(after_help = SERVE_EXAMPLES)]
pub struct Serve {
    /// The protocol.
    #[arg(value_enum)]
    pub served: Served,

    /// Where to listen; port 0 is a free one.
    #[arg(
        short,
        long,
        value_name = "IP:PORT",
        value_delimiter = ',',
        default_value = "127.0.0.1:9100"
    )]
    pub listen: Vec<SocketAddr>,

    /// A file with more addresses to listen on, separated by spaces or newlines.
    #[arg(long, value_name = "FILE")]
    pub listen_addrs_file: Option<PathBuf>,

    /// Threads that answer.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub threads: u32,

    /// End after this time. [default: at Ctrl-C]
    #[arg(long, value_name = "TIME", value_parser = values::duration)]
    pub duration: Option<Duration>,

    /// CPUs on which the server runs: 0, or 0,2.
    #[arg(long, value_name = "N", value_parser = values::cpus)]
    pub cpu: Option<CpuList>,
}
