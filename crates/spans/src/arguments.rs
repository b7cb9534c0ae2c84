// SPDX-License-Identifier: Apache-2.0
use crate::attributes::Keys;
use clap::{Args, Parser, Subcommand};
use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::PathBuf;
use tare_command::{Failure, ResultExt};

const EXAMPLES: &str = "\
Examples:
  Receive spans of local programs until Ctrl-C, then look at them:
    tare spans receive --out spans.arrow
    tare spans show spans.arrow
  A Java program that sends its spans there:
    OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:4318 OTEL_METRICS_EXPORTER=none \\
      OTEL_LOGS_EXPORTER=none java -javaagent:opentelemetry-javaagent.jar -jar app.jar";

const RUN_EXAMPLES: &str = "\
The program gets OTEL_EXPORTER_OTLP_ENDPOINT and OTEL_EXPORTER_OTLP_PROTOCOL, and, unless they are
set, OTEL_TRACES_EXPORTER=otlp, OTEL_METRICS_EXPORTER=none and OTEL_LOGS_EXPORTER=none.

Example:
  tare spans run -- java -javaagent:opentelemetry-javaagent.jar -jar app.jar";

/// Receive spans of traces, and write them as samples.
#[derive(Debug, Parser)]
#[command(name = "tare-spans", bin_name = "tare spans", version)]
pub struct Arguments {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Receive spans over OTLP until Ctrl-C or SIGTERM.
    Receive(Receive),
    /// Run a program, and receive the spans that it sends.
    Run(Run),
    /// Write the spans of messages on standard input: for `tare spans fetch`.
    #[command(hide = true)]
    Decode(Decode),
    /// Print the columns that are written.
    Schema {
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
}

#[derive(Debug, Args)]
pub struct Attributes {
    /// Keep this attribute of spans or of their resource, for --group-by; can be repeated.
    #[arg(long = "attribute", value_name = "KEY")]
    keys: Vec<String>,
}

impl Attributes {
    pub fn keys(&self) -> Result<Keys, Failure> {
        Keys::new(&self.keys).or_input("--attribute")
    }
}

#[derive(Debug, Args)]
#[command(after_help = RUN_EXAMPLES)]
pub struct Run {
    /// Arrow file that gets the spans; it is replaced.
    #[arg(long, value_name = "FILE", default_value = "spans.arrow")]
    pub out: PathBuf,
    #[command(flatten)]
    pub attributes: Attributes,
    /// Arrow file that gets the counters of the receiver; it is replaced every second.
    #[arg(long, value_name = "FILE")]
    pub costs: Option<PathBuf>,
    /// Print the summary as JSON, on standard error.
    #[arg(long)]
    pub json: bool,
    /// The program and its arguments.
    #[arg(last = true, required = true, value_name = "COMMAND")]
    pub command: Vec<OsString>,
}

#[derive(Debug, Args)]
pub struct Decode {
    /// Arrow file that gets the spans; it is replaced.
    #[arg(long, value_name = "FILE")]
    pub out: PathBuf,
    #[command(flatten)]
    pub attributes: Attributes,
}

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Receive {
    /// Arrow file that gets the spans; it is replaced.
    #[arg(long, value_name = "FILE", default_value = "spans.arrow")]
    pub out: PathBuf,
    #[command(flatten)]
    pub attributes: Attributes,
    /// Address and port for OTLP over gRPC.
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:4317")]
    pub grpc: SocketAddr,
    /// Address and port for OTLP over HTTP, as protobuf or JSON.
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:4318")]
    pub http: SocketAddr,
    /// Print the summary as JSON.
    #[arg(long)]
    pub json: bool,
}
