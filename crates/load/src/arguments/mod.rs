// SPDX-License-Identifier: Apache-2.0
//! Arguments of the command line: options and their values.

pub mod address;
pub mod flows;
pub mod options;
pub mod url;
pub mod values;

use address::Address;
use clap::{ArgGroup, Args, Parser, Subcommand, ValueEnum};
use flows::{Connect, Serve, Udp};
use options::Options;
use std::path::PathBuf;
use url::Url;
use values::{Named, Text};

const HTTP_EXAMPLES: &str = "\
Examples:
  One user for ten seconds, with every request recorded:
    tare load http http://127.0.0.1:8080/ --out samples.arrow
  1000 requests/s at fixed times, however slow the service is, on up to 64 connections:
    tare load http http://127.0.0.1:8080/ --mode open --rate 1000 --users 64
  Two services, loaded alternately for 5 ms each, in random order:
    tare load http --target plain=http://127.0.0.1:8080/ --target hook=http://127.0.0.1:8081/
  Fifty users as HTTP/2 streams on two connections:
    tare load http https://localhost:8443/ --http 2 --users 50 --connections 2
  The highest rate that a service supports:
    tare load http http://127.0.0.1:8080/ --capacity";

const TCP_EXAMPLES: &str = "\
Escapes in TEXT: \\r, \\n, \\t, \\0, \\xHH for any byte, and \\\\ for a backslash.

Examples:
  Fifty users of Redis, with every request recorded:
    tare load tcp 127.0.0.1:6379 --send 'GET key\\r\\n' --reply resp --users 50 --out samples.arrow
  Up to sixteen outstanding requests per connection:
    tare load tcp 127.0.0.1:6379 --send 'GET key\\r\\n' --reply resp --users 50 --pipeline 16
  Send a line and wait for a line, 1000 requests/s at fixed times:
    tare load tcp localhost:7 --send 'hello\\n' --reply-until '\\n' --mode open --rate 1000
  Two services, with a request from a file and replies of 64 bytes:
    tare load tcp --target plain=127.0.0.1:9000 --target link=127.0.0.1:9001 \\
      --send-file request.bin --reply-bytes 64";

/// Send requests to services and record each of them.
#[derive(Debug, Parser)]
#[command(name = "tare-load", bin_name = "tare load", version)]
pub struct Arguments {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Send requests over HTTP/1.1 or HTTP/2, with or without TLS.
    Http(Box<Http>),
    /// Send one request repeatedly over plain TCP, and wait for each reply.
    Tcp(Box<Tcp>),
    /// Send datagrams to servers that send them back, over any number of flows.
    Udp(Box<Udp>),
    /// Send messages over many flows, TCP or UDP, to servers that send them back.
    Connect(Box<Connect>),
    /// Run a server that sends every message back, for `udp` and `connect`.
    Serve(Box<Serve>),
    /// Measure what the kernel, memory and arithmetic cost here, and print JSON.
    #[command(hide = true)]
    Fingerprint(Fingerprint),
    /// Print the tables and columns that --out and --machine write.
    Schema {
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
}

#[derive(Debug, Args)]
pub struct Fingerprint {
    /// Where to write files.
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub folder: PathBuf,

    /// Memory that the measurement of memory may use.
    #[arg(long, value_name = "BYTES", default_value_t = 192 << 20)]
    pub memory: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Version {
    /// One connection per user.
    #[value(name = "1.1")]
    One,
    /// Users are streams on shared connections: by ALPN with TLS, otherwise by prior knowledge.
    #[value(name = "2")]
    Two,
}

#[derive(Debug, Args)]
#[command(after_help = HTTP_EXAMPLES)]
pub struct Http {
    /// The service: http://HOST[:PORT]/PATH, or https:// for TLS.
    #[arg(required_unless_present = "target", conflicts_with = "target")]
    pub url: Option<String>,

    /// A service and its name. Repeat it for more services: the load alternates between them,
    /// one slice each.
    #[arg(long, value_name = "NAME=URL", value_parser = values::named_url)]
    pub target: Vec<Named<Url>>,

    /// Version of HTTP.
    #[arg(long, value_name = "V", value_enum, default_value = "1.1")]
    pub http: Version,

    /// Number of HTTP/2 connections to each target, shared by its users.
    /// [default: the number of --threads]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=65_536))]
    pub connections: Option<u32>,

    /// Method of the requests. [default: GET; with --body: POST]
    #[arg(long, value_name = "M", value_parser = values::method)]
    pub method: Option<String>,

    /// Send this header; it replaces a default header of the same name.
    #[arg(long, value_name = "K: V", value_parser = values::header)]
    pub header: Vec<String>,

    /// Send this file as the body.
    #[arg(long, value_name = "FILE")]
    pub body: Option<PathBuf>,

    /// Trust the certificate authorities in this PEM file, instead of the system's.
    #[arg(long, value_name = "FILE")]
    pub ca: Option<PathBuf>,

    /// Accept any certificate: neither its signature nor its name is checked.
    #[arg(long, conflicts_with = "ca")]
    pub insecure: bool,

    /// Count this status as success. Repeatable. [default: 200 to 399]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(100..=999))]
    pub expect_status: Vec<u16>,

    /// Count a response as success only if its body equals this file.
    #[arg(long, value_name = "FILE")]
    pub expect_body: Option<PathBuf>,

    #[command(flatten)]
    pub options: Options,
}

/// Where replies end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Replies {
    /// The Redis protocol, RESP2 or RESP3. An error reply counts as an error.
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

    /// A service and its name. Repeat it for more services: the load alternates between them,
    /// one slice each.
    #[arg(long, value_name = "NAME=HOST:PORT", value_parser = values::named_address)]
    pub target: Vec<Named<Address>>,

    /// The bytes of a request; for escapes see below.
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true, value_parser = values::text)]
    pub send: Option<Text>,

    /// Read the bytes of a request from this file.
    #[arg(long, value_name = "FILE")]
    pub send_file: Option<PathBuf>,

    /// The protocol that defines the end of a reply.
    #[arg(long, value_name = "PROTOCOL", value_enum)]
    pub reply: Option<Replies>,

    /// A reply ends with this text; for escapes see below.
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true, value_parser = values::text)]
    pub reply_until: Option<Text>,

    /// A reply has this number of bytes.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub reply_bytes: Option<u64>,

    /// Largest reply with --reply or --reply-until, in bytes; a longer reply is an error.
    #[arg(long, value_name = "N", default_value_t = 512 << 20, conflicts_with = "reply_bytes", value_parser = clap::value_parser!(u64).range(1..))]
    pub reply_limit: u64,

    /// Largest number of outstanding requests per connection. Replies must arrive in the order of
    /// the requests.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub pipeline: u32,

    #[command(flatten)]
    pub options: Options,
}
