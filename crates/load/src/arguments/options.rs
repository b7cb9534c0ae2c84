// SPDX-License-Identifier: Apache-2.0
//! The options that every protocol has.

use super::values::{self, CpuList, Watched};
use crate::schedule::arrivals;
use clap::{Args, ValueEnum};
use std::path::PathBuf;
use std::time::Duration;
use tare_command::Failure;

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Mode {
    /// Each user sends its next request as soon as it has the response.
    Closed,
    /// The users send at --rate in total; a late user does not catch up.
    Constant,
    /// Requests have fixed start times at --rate. A late request is sent at once, and its
    /// response time counts from its intended start.
    Open,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Reuse {
    /// Connections stay open.
    KeepAlive,
    /// A new connection for each request; the request's time includes the connect and the TLS
    /// handshake.
    PerRequest,
}

#[derive(Debug, Args)]
pub struct Options {
    /// When requests are sent.
    #[arg(long, value_enum, default_value_t = Mode::Closed)]
    pub mode: Mode,

    /// Number of users (closed, constant), or of outstanding requests per target at most (open).
    /// [default: 1; open: 256]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=65_536))]
    pub users: Option<u32>,

    /// Requests/s to each target, of all users together, during the target's slices.
    #[arg(long, value_name = "R", value_parser = values::rate)]
    pub rate: Option<f64>,

    /// Number of threads; the users are divided among them.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub threads: u32,

    /// Whether connections are reused.
    #[arg(long, value_enum, default_value_t = Reuse::KeepAlive)]
    pub connection: Reuse,

    /// Length of the measured window, for all targets together: 500us, 20ms, 10s, 2m.
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = values::duration)]
    pub duration: Duration,

    /// Measure this number of requests per target, instead of a duration.
    #[arg(long, value_name = "N", conflicts_with = "duration", value_parser = clap::value_parser!(u64).range(1..))]
    pub requests: Option<u64>,

    /// Load before the measured window; it is not recorded.
    #[arg(long, value_name = "TIME", default_value = "2s", value_parser = values::duration_or_zero)]
    pub warmup: Duration,

    /// Length of a slice: the load on a target before it changes to the next. At least 50us.
    #[arg(long, value_name = "TIME", default_value = "5ms", value_parser = values::slice)]
    pub slice: Duration,

    /// Seed for the order of slices. [default: random; it is printed]
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,

    /// Time until a request without a complete response fails.
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = values::duration)]
    pub timeout: Duration,

    /// CPUs that the generator runs on: 0, or 0,2.
    #[arg(long, value_name = "N", value_parser = values::cpus)]
    pub cpu: Option<CpuList>,

    /// Record CPU time and run delay of these processes of a target for each slice. Exited
    /// processes are ignored.
    #[arg(long, value_name = "NAME=PID[,PID]", value_parser = values::watched)]
    pub watch: Vec<Watched>,

    /// Write each request to this Arrow stream.
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,

    /// Write CPU readings of each slice to this Arrow stream.
    #[arg(long, value_name = "FILE")]
    pub machine: Option<PathBuf>,

    /// Only find the highest rate that the service supports. Takes 10 s, or about 25 response
    /// times if that is longer.
    #[arg(long, conflicts_with_all = ["target", "mode", "users", "rate", "requests", "duration", "warmup", "slice", "out", "machine", "watch"])]
    pub capacity: bool,

    /// Print one JSON object, and no progress.
    #[arg(long)]
    pub json: bool,
}

impl Options {
    /// When requests are sent, as [`Options::mode`] and [`Options::rate`] say together.
    pub fn mode(&self) -> Result<arrivals::Mode, Failure> {
        match (self.mode, self.rate) {
            (Mode::Closed, None) => Ok(arrivals::Mode::Closed),
            (Mode::Closed, Some(_)) => {
                Err(Failure::input("--rate needs --mode constant or --mode open"))
            }
            (Mode::Constant, Some(rate)) => Ok(arrivals::Mode::Constant { rate }),
            (Mode::Open, Some(rate)) => Ok(arrivals::Mode::Open { rate }),
            (_, None) => Err(Failure::input("--mode constant and --mode open need --rate")),
        }
    }

    /// A new connection for each request.
    pub fn is_per_request(&self) -> bool {
        self.connection == Reuse::PerRequest
    }
}
