// SPDX-License-Identifier: Apache-2.0
//! From the options that every protocol has to threads, and to the summary at the end.

use crate::arguments::options::Options;
use crate::arguments::values::CpuList;
use crate::clock::{Clock, Nanoseconds};
use crate::cpu_affinity;
use crate::file_limit;
use crate::measurement::{FILES_OF_A_THREAD, Measurement};
use crate::record::live::Live;
use crate::record::readings::Process;
use crate::record::recorder::PlannedTable;
use crate::record::report;
use crate::record::summary::Summary;
use crate::schedule::arrivals::Mode;
use crate::schedule::capacity::{MOST_USERS, Search};
use crate::schedule::request_limit::RequestLimit;
use crate::schedule::slices::{Plan, Rounds, Schedule};
use crate::stop;
use crate::target::Target;
use crate::workers::Settings;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;
use tare_command::{Failure, ResultExt};

/// Open files beside those of connections, threads and watched processes: streams, tables,
/// /proc/stat, and some to spare.
const OTHER_FILES: usize = 16;
/// Each slot of a user takes about 100 bytes.
const MOST_UNDER_WAY: usize = 1 << 20;

/// How users share connections.
#[derive(Debug, Clone, Copy)]
pub struct Sharing {
    /// Connections of HTTP/2 that all users share; else each user has its own.
    pub connections: Option<usize>,
    /// The most requests that a user has under way.
    pub pipeline: usize,
}

/// Puts the load on what `targets` finds.
pub fn run(
    options: &Options,
    sharing: Sharing,
    targets: impl FnOnce() -> Result<Arc<[Target]>, Failure>,
) -> Result<ExitCode, Failure> {
    let mode = options.mode()?;
    let Sharing { connections, pipeline } = sharing;
    let limit = file_limit::raise_open_files();
    let targets = targets()?;
    let watched = watched(options, &targets)?;
    let watching: usize = watched.iter().flatten().map(Process::files).sum();
    let files = OTHER_FILES + watching + options.threads as usize * FILES_OF_A_THREAD;
    let users = users(options, mode, limit.saturating_sub(files))?;
    if users * pipeline > MOST_UNDER_WAY {
        return Err(Failure::input(format_args!(
            "--users {users} with --pipeline {pipeline}: at most {MOST_UNDER_WAY} requests can be \
             outstanding per target; lower --users or --pipeline"
        )));
    }
    // An open loop makes connections when they are needed.
    if connections.is_some() || !matches!(mode, Mode::Open { .. }) {
        enough_open_files(users, connections, targets.len(), files, limit)?;
    }
    separate_files(options)?;
    let samples = PlannedTable::open("--out", options.out.as_deref())?;
    let machine = PlannedTable::open("--machine", options.machine.as_deref())?;
    if let Some(CpuList(cpus)) = &options.cpu {
        cpu_affinity::pin(cpus).or_input("--cpu: the generator cannot run on these CPUs")?;
    }
    stop::catch_signals().or_failed("signals cannot be caught")?;

    let seed = options.seed.unwrap_or_else(|| fastrand::u64(..1 << 53));
    let request_limit = Arc::new(match options.requests {
        Some(requests) => RequestLimit::each(requests, targets.len()),
        None => RequestLimit::unlimited(),
    });
    let plan = Plan {
        targets: targets.len(),
        users,
        slice: nanoseconds(options.slice),
        warm_up: nanoseconds(options.warmup),
        window: match options.requests {
            Some(_) => Nanoseconds::MAX,
            None => nanoseconds(options.duration),
        },
        seed,
    };
    let (schedule, capacity): (Box<dyn Schedule>, _) = if options.capacity {
        let (search, found) = Search::new(seed, users);
        (Box::new(search), Some(found))
    } else {
        (Box::new(Rounds::new(plan, request_limit.clone())), None)
    };
    let settings = Settings {
        targets,
        per_request: options.is_per_request(),
        timeout: nanoseconds(options.timeout),
        request_limit,
        clock: Clock::start(),
    };
    let measurement = Measurement {
        settings,
        mode,
        users,
        threads: options.threads as usize,
        connections,
        pipeline,
        schedule,
        watched,
        samples,
        machine,
        live: Live::new(
            options.json,
            if options.capacity { Duration::ZERO } else { options.warmup },
        ),
    };
    let summaries = measurement.carry_out()?;
    let capacity = capacity.map(|found| found.get().copied());
    if capacity == Some(None) && stop::signal().is_none() {
        return Err(Failure::work(format_args!(
            "no capacity was found, because no request succeeded ({}); check what the service \
             answers",
            summaries[0].errors_by_kind()
        )));
    }
    let result = if options.json {
        let summaries = if options.capacity { &[] } else { summaries.as_slice() };
        format!("{}\n", report::json(summaries, capacity.flatten(), seed))
    } else if let Some(found) = capacity {
        report::capacity(found)
    } else {
        format!("{}seed {seed}\n", report::table(&summaries, mode != Mode::Closed))
    };
    tare_command::print(result)?;
    if !summaries.is_empty()
        && capacity.is_none()
        && summaries.iter().all(|summary| summary.requests == summary.errors)
        && stop::signal().is_none()
    {
        return Err(Failure::work(no_success(&summaries)));
    }
    Ok(match stop::signal() {
        Some(signal) => ExitCode::from(128 + signal as u8),
        None => ExitCode::SUCCESS,
    })
}

/// Why the load measured nothing.
fn no_success(summaries: &[Summary]) -> String {
    let errors: Vec<_> = summaries
        .iter()
        .filter(|summary| summary.errors > 0)
        .map(|summary| format!("{}: {}", summary.name, summary.errors_by_kind()))
        .collect();
    if errors.is_empty() {
        return "no request was answered within the window; give a longer --duration".to_owned();
    }
    format!(
        "no request succeeded ({}); check that the service runs, and what it answers",
        errors.join("; ")
    )
}

/// The most users, when there are files for so many connections.
fn users(options: &Options, mode: Mode, connections: usize) -> Result<usize, Failure> {
    let unless_given = match mode {
        _ if options.capacity => MOST_USERS.min(connections),
        Mode::Open { .. } => 256.max(options.threads as usize),
        Mode::Closed | Mode::Constant { .. } => 1,
    };
    let users = options.users.map_or(unless_given, |users| users as usize);
    if (options.threads as usize) > users {
        return Err(Failure::input(format_args!(
            "--threads {}: expected at most the number of --users, which is {users}",
            options.threads
        )));
    }
    Ok(users)
}

/// `others` are the files beside the connections.
fn enough_open_files(
    users: usize,
    connections: Option<usize>,
    targets: usize,
    others: usize,
    limit: usize,
) -> Result<(), Failure> {
    let needed = connections.unwrap_or(users) * targets + others;
    if needed <= limit {
        return Ok(());
    }
    Err(Failure::input(format_args!(
        "{}: the generator needs {needed} open files (connections to all targets, threads, \
         watched processes), but the limit is {limit}. Raise the limit (ulimit -n), or lower the \
         number",
        connections.map_or(format!("--users {users}"), |n| format!("--connections {n}"))
    )))
}

/// Two streams in one file would be none; a device takes both.
fn separate_files(options: &Options) -> Result<(), Failure> {
    match &options.out {
        Some(out) if options.machine.as_ref() == Some(out) && (out.is_file() || !out.exists()) => {
            Err(Failure::input(format_args!(
                "--out and --machine are both {}: give each its own file",
                out.display()
            )))
        }
        _ => Ok(()),
    }
}

/// The processes to watch, by target.
fn watched(options: &Options, targets: &[Target]) -> Result<Vec<Vec<Process>>, Failure> {
    let mut processes: Vec<_> = targets.iter().map(|_| Vec::new()).collect();
    for watched in &options.watch {
        let Some(at) = targets.iter().position(|target| target.name == watched.name) else {
            return Err(Failure::input(format_args!(
                "--watch {}: no --target has this name",
                watched.name
            )));
        };
        // Some of a service's processes may have ended since somebody listed them.
        let mut gone = Ok(());
        let before = processes[at].len();
        for pid in &watched.pids {
            match Process::open(*pid).or_input(format_args!("--watch: process {pid}")) {
                Ok(process) => processes[at].push(process),
                Err(failure) => gone = Err(failure),
            }
        }
        if processes[at].len() == before {
            gone?;
        }
    }
    Ok(processes)
}

fn nanoseconds(time: Duration) -> Nanoseconds {
    Nanoseconds::try_from(time.as_nanos()).unwrap_or(Nanoseconds::MAX)
}
