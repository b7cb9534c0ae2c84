// SPDX-License-Identifier: Apache-2.0
use crate::address::Address;
use crate::options::Options;
use crate::url::Url;
use crate::values::{self, Named, Text};
use clap::{ArgGroup, Args, Parser, Subcommand, ValueEnum};
use std::path::PathBuf;

const HTTP_EXAMPLES: &str = "\
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

const TCP_EXAMPLES: &str = "\
Bytes that cannot be typed are written as \\r, \\n, \\t, \\0 and \\xHH, a backslash as \\\\.

Examples:
  Fifty users of Redis, with every request recorded:
    tare load tcp 127.0.0.1:6379 --send 'GET key\\r\\n' --reply resp --users 50 --out samples.arrow
  Sixteen requests under way on each connection:
    tare load tcp 127.0.0.1:6379 --send 'GET key\\r\\n' --reply resp --users 50 --pipeline 16
  A line for a line, 1000 a second whatever the service does:
    tare load tcp localhost:7 --send 'hello\\n' --reply-until '\\n' --mode open --rate 1000
  Two services compared, with a request from a file and replies of 64 bytes:
    tare load tcp --target plain=127.0.0.1:9000 --target link=127.0.0.1:9001 \\
      --send-file request.bin --reply-bytes 64";

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
    /// Load on any TCP service, of which is known what to send and where a reply ends.
    Tcp(Box<Tcp>),
    /// The tables that --out and --machine write, and their columns.
    Schema {
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
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
#[command(after_help = HTTP_EXAMPLES)]
pub struct Http {
    /// The service, as http://HOST[:PORT]/PATH, or https:// for TLS.
    #[arg(required_unless_present = "target", conflicts_with = "target")]
    pub url: Option<String>,

    /// A service and its name; several of them have load in turn, a slice each.
    #[arg(long, value_name = "NAME=URL", value_parser = values::named_url)]
    pub target: Vec<Named<Url>>,

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

    #[command(flatten)]
    pub options: Options,
}

/// Where replies end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Replies {
    /// Redis' protocol, RESP2 or RESP3; an error reply is no success.
    Resp,
}

#[derive(Debug, Args)]
#[command(
    after_help = TCP_EXAMPLES,
    group = ArgGroup::new("request").required(true).args(["send", "send_file"]),
    group = ArgGroup::new("end").required(true).args(["reply", "reply_until", "reply_bytes"]),
)]
pub struct Tcp {
    /// The service.
    #[arg(value_name = "HOST:PORT", required_unless_present = "target", conflicts_with = "target", value_parser = values::address)]
    pub address: Option<Address>,

    /// A service and its name; several of them have load in turn, a slice each.
    #[arg(long, value_name = "NAME=HOST:PORT", value_parser = values::named_address)]
    pub target: Vec<Named<Address>>,

    /// The bytes of a request, with escapes as below.
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true, value_parser = values::text)]
    pub send: Option<Text>,

    /// A file with the bytes of a request.
    #[arg(long, value_name = "FILE")]
    pub send_file: Option<PathBuf>,

    /// The protocol that says where a reply ends.
    #[arg(long, value_name = "PROTOCOL", value_enum)]
    pub reply: Option<Replies>,

    /// A reply ends with this text, with escapes as below.
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true, value_parser = values::text)]
    pub reply_until: Option<Text>,

    /// A reply has this number of bytes.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub reply_bytes: Option<u64>,

    /// The most bytes of a reply of --reply or --reply-until; a longer one is an error.
    #[arg(long, value_name = "N", default_value_t = 512 << 20, conflicts_with = "reply_bytes", value_parser = clap::value_parser!(u64).range(1..))]
    pub reply_limit: u64,

    /// The most requests that a user has under way on its connection. Replies come in the order
    /// of the requests.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub pipeline: u32,

    #[command(flatten)]
    pub options: Options,
}
