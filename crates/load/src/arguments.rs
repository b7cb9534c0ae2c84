// SPDX-License-Identifier: Apache-2.0
use crate::values::{self, CpuList, NamedUrl, Watched};
use clap::{Args, Parser, Subcommand, ValueEnum};
use std::path::PathBuf;
use std::time::Duration;

const EXAMPLES: &str = "\
Examples:
  One user for ten seconds, with every request recorded:
    tare load http http://127.0.0.1:8080/ --out samples.arrow
  1000 requests a second whatever the service does, on up to 64 connections:
    tare load http http://127.0.0.1:8080/ --mode open --rate 1000 --users 64
  Two services compared, 5 ms of load at a time in random order:
    tare load http --target plain=http://127.0.0.1:8080/ --target hook=http://127.0.0.1:8081/
  Fifty users as streams of HTTP/2 on two connections:
    tare load http https://localhost:8443/ --http 2 --users 50 --connections 2
  The most that a service bears:
    tare load http http://127.0.0.1:8080/ --capacity";

/// Puts load on services and records every request.
#[derive(Debug, Parser)]
#[command(name = "tare-load", version)]
pub struct Arguments {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// HTTP/1.1 or HTTP/2 load, in clear text or under TLS, on one service, or on several in turn.
    Http(Box<Http>),
    /// The tables that --out and --machine write, and their columns.
    Schema {
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Mode {
    /// Each user sends its next request when it has its answer.
    Closed,
    /// The users together send --rate; one that is late does not catch up.
    Constant,
    /// Every request has its time, at --rate; a late one is sent at once, and its
    /// response time counts from when it should have been sent.
    Open,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Reuse {
    /// Connections stay open.
    KeepAlive,
    /// A new connection for each request, whose time includes the connect, and the handshake of
    /// TLS.
    PerRequest,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Version {
    /// A connection for each user.
    #[value(name = "1.1")]
    One,
    /// Users are streams on a few connections: by ALPN under TLS, else by prior knowledge.
    #[value(name = "2")]
    Two,
}

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Http {
    /// The service, as http://HOST[:PORT]/PATH, or https:// for TLS.
    #[arg(required_unless_present = "target", conflicts_with = "target")]
    pub url: Option<String>,

    /// A service and its name; several of them have load in turn, a slice each.
    #[arg(long, value_name = "NAME=URL", value_parser = values::named_url)]
    pub target: Vec<NamedUrl>,

    /// When requests are sent.
    #[arg(long, value_enum, default_value_t = Mode::Closed)]
    pub mode: Mode,

    /// Users (closed, constant), or the most requests under way to a target (open).
    /// [default: 1; open: 256]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=65_536))]
    pub users: Option<u32>,

    /// Requests a second, of all users together, during a target's slices.
    #[arg(long, value_name = "R", value_parser = values::rate)]
    pub rate: Option<f64>,

    /// Threads that share the users.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub threads: u32,

    /// How connections are used.
    #[arg(long, value_enum, default_value_t = Reuse::KeepAlive)]
    pub connection: Reuse,

    /// Version of HTTP.
    #[arg(long, value_name = "V", value_enum, default_value = "1.1")]
    pub http: Version,

    /// Connections of HTTP/2 to a target, which its users share.
    /// [default: 1; one for each of --threads]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=65_536))]
    pub connections: Option<u32>,

    /// Method of the requests. [default: GET; with --body: POST]
    #[arg(long, value_name = "M", value_parser = values::method)]
    pub method: Option<String>,

    /// A header to send; it replaces one that would be sent anyway.
    #[arg(long, value_name = "K: V", value_parser = values::header)]
    pub header: Vec<String>,

    /// A file to send as the body.
    #[arg(long, value_name = "FILE")]
    pub body: Option<PathBuf>,

    /// A PEM file with the authorities whose certificates are taken, instead of the system's.
    #[arg(long, value_name = "FILE")]
    pub ca: Option<PathBuf>,

    /// Take any certificate, whoever signed it and whatever name it is for.
    #[arg(long, conflicts_with = "ca")]
    pub insecure: bool,

    /// A status that counts as success. [default: 200 to 399]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(100..=999))]
    pub expect_status: Vec<u16>,

    /// A file with the body that every answer should have.
    #[arg(long, value_name = "FILE")]
    pub expect_body: Option<PathBuf>,

    /// Length of the measured window, all targets together: 500us, 20ms, 10s, 2m.
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = values::duration)]
    pub duration: Duration,

    /// Measure so many requests to each target instead of for a time.
    #[arg(long, value_name = "N", conflicts_with = "duration", value_parser = clap::value_parser!(u64).range(1..))]
    pub requests: Option<u64>,

    /// Load before the window, which is not recorded.
    #[arg(long, value_name = "TIME", default_value = "2s", value_parser = values::duration_or_zero)]
    pub warmup: Duration,

    /// Length of a slice, at least 50us.
    #[arg(long, value_name = "TIME", default_value = "5ms", value_parser = values::slice)]
    pub slice: Duration,

    /// Seed of the order of slices. [default: random, and printed]
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,

    /// When a request without its complete answer is given up.
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = values::duration)]
    pub timeout: Duration,

    /// CPUs on which the generator runs: 0, or 0,2.
    #[arg(long, value_name = "N", value_parser = values::cpus)]
    pub cpu: Option<CpuList>,

    /// Processes of a target whose CPU time and run delay are read for each slice; those that
    /// have ended are left out.
    #[arg(long, value_name = "NAME=PID[,PID]", value_parser = values::watched)]
    pub watch: Vec<Watched>,

    /// Write every request to this Arrow stream.
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,

    /// Write the readings of every slice to this Arrow stream.
    #[arg(long, value_name = "FILE")]
    pub machine: Option<PathBuf>,

    /// Find the most that the service bears, and nothing else: within 10 s, or within some 25
    /// times as long as an answer takes.
    #[arg(long, conflicts_with_all = ["target", "mode", "users", "rate", "requests", "duration", "warmup", "slice", "out", "machine", "watch"])]
    pub capacity: bool,

    /// Print one JSON object, and nothing while the load runs.
    #[arg(long)]
    pub json: bool,
}
