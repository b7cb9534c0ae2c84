// SPDX-License-Identifier: Apache-2.0
//! The options that every protocol has.

use crate::session;
use crate::values::{self, CpuList, Watched};
use clap::{Args, ValueEnum};
use std::path::PathBuf;
use std::time::Duration;
use tare_command::Failure;

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

#[derive(Debug, Args)]
pub struct Options {
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

impl Options {
    /// When requests are sent, as [`Options::mode`] and [`Options::rate`] say together.
    pub fn mode(&self) -> Result<session::Mode, Failure> {
        match (self.mode, self.rate) {
            (Mode::Closed, None) => Ok(session::Mode::Closed),
            (Mode::Closed, Some(_)) => {
                Err(Failure::input("--rate needs --mode constant or --mode open"))
            }
            (Mode::Constant, Some(rate)) => Ok(session::Mode::Constant { rate }),
            (Mode::Open, Some(rate)) => Ok(session::Mode::Open { rate }),
            (_, None) => Err(Failure::input("--mode constant and --mode open need --rate")),
        }
    }

    /// A new connection for each request.
    pub fn is_per_request(&self) -> bool {
        self.connection == Reuse::PerRequest
    }
}
