// SPDX-License-Identifier: Apache-2.0
//! `tare spans run`: a program whose spans are received as long as it runs.

use crate::arguments::Run;
use crate::receiver::Receiver;
use crate::server::Counts;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::process::{Command, ExitCode, ExitStatus};
use tare_command::{Child, CostsFile, Failure, ResultExt, Signals, exit_code, say};
use tare_tables::{COSTS, Cell, Vacant};

const SIGNALS: &[i32] = &[libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT, libc::SIGCHLD];
/// What the program does with its signals, unless its user has said.
const DEFAULTS: [(&str, &str); 3] = [
    ("OTEL_TRACES_EXPORTER", "otlp"),
    ("OTEL_METRICS_EXPORTER", "none"),
    ("OTEL_LOGS_EXPORTER", "none"),
];
const ANY_PORT: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

pub fn run(wanted: &Run) -> Result<ExitCode, Failure> {
    let signals = Signals::take(SIGNALS).or_failed("signals")?;
    let receiver =
        Receiver::new(&[("a socket", ANY_PORT)], &wanted.out, wanted.attributes.keys()?)?;
    let mut costs = match &wanted.costs {
        Some(file) => {
            Some(CostsFile::create(file, |vacant| write_costs(vacant, &Counts::default()))?)
        }
        None => None,
    };
    let mut command = Command::new(&wanted.command[0]);
    command.args(&wanted.command[1..]);
    command.env("OTEL_EXPORTER_OTLP_ENDPOINT", format!("http://{}", receiver.addresses()?[0]));
    command.env("OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf");
    for (name, value) in DEFAULTS {
        if std::env::var_os(name).is_none() {
            command.env(name, value);
        }
    }
    let name = wanted.command[0].to_string_lossy();
    let mut child =
        Child::spawn(&mut command, &signals).or_input(format_args!("COMMAND {name}"))?;
    let mut status: Option<ExitStatus> = None;
    let received = receiver.receive(
        &signals,
        || {
            while let Some(signal) = signals.next() {
                // What the terminal sent went to the program as well; SIGCHLD is for us.
                if signal.number != libc::SIGCHLD && !signal.from_kernel {
                    child.send(signal.number);
                }
            }
            status = child.ended().or_failed("the program cannot be waited for")?;
            Ok(status.is_some())
        },
        |counts| {
            if let Some(costs) = &mut costs {
                costs.turn(false, |vacant| write_costs(vacant, counts));
            }
        },
    );
    let counts = match received {
        Ok(counts) => counts,
        // The program goes on without a receiver, as its exporter copes with that.
        Err(failure) => {
            say(failure);
            return Ok(ExitCode::from(wait(&mut child, &signals)?));
        }
    };
    if let Some(costs) = &mut costs {
        costs.renew(|vacant| write_costs(vacant, &counts));
    }
    if wanted.json {
        eprintln!("{}", counts.json());
    } else {
        say(counts.text(&wanted.out.display().to_string()));
    }
    Ok(ExitCode::from(status.map_or(1, exit_code)))
}

/// The exit code of the program, whose signals are still passed on.
fn wait(child: &mut Child, signals: &Signals) -> Result<u8, Failure> {
    use std::os::fd::{AsFd, AsRawFd};
    loop {
        if let Some(status) = child.ended().or_failed("the program cannot be waited for")? {
            return Ok(exit_code(status).max(1));
        }
        let mut readable =
            libc::pollfd { fd: signals.as_fd().as_raw_fd(), events: libc::POLLIN, revents: 0 };
        // SAFETY: the pointer is to one entry.
        unsafe { libc::poll(&mut readable, 1, -1) };
        while let Some(signal) = signals.next() {
            if signal.number != libc::SIGCHLD && !signal.from_kernel {
                child.send(signal.number);
            }
        }
    }
}

fn write_costs(vacant: Vacant, counts: &Counts) -> io::Result<()> {
    let mut writer = vacant.begin(&COSTS, &["layer", "metric", "count"])?;
    for (metric, count) in [
        ("spans", counts.spans),
        ("spans_rejected", counts.rejected.total()),
        ("requests", counts.requests),
        ("requests_refused", counts.refused_requests),
    ] {
        let count = i64::try_from(count).unwrap_or(i64::MAX);
        writer.row(&[Cell::Text("spans"), Cell::Text(metric), Cell::Int(count)])?;
    }
    writer.finish()
}
