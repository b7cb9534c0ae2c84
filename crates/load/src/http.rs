// SPDX-License-Identifier: Apache-2.0
//! `tare-load http`: from arguments to threads, and to the summary at the end.

use crate::arguments::{self, Http, Reuse, Version};
use crate::budget::Budget;
use crate::capacity::{MOST_USERS, Search};
use crate::clock::{Clock, Nanoseconds};
use crate::crew::Settings;
use crate::limits;
use crate::live::Live;
use crate::readings::Process;
use crate::recorder::Place;
use crate::report;
use crate::response::Expected;
use crate::session::{FILES_OF_A_THREAD, Mode, Session};
use crate::slices::{Plan, Rounds, Schedule};
use crate::stop;
use crate::target::{Message, Target};
use crate::tls::{self, Tls, Trust};
use crate::url::Url;
use crate::values::CpuList;
use rustls::ClientConfig;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;
use tare_command::{Failure, ResultExt};

/// Open files beside those of connections, threads and watched processes: streams, tables,
/// /proc/stat, and some to spare.
const OTHER_FILES: usize = 16;

pub fn run(arguments: &Http) -> Result<ExitCode, Failure> {
    let mode = mode(arguments)?;
    let limit = limits::raise_open_files();
    let targets = targets(arguments)?;
    let watched = watched(arguments, &targets)?;
    let watching: usize = watched.iter().flatten().map(Process::files).sum();
    let files = OTHER_FILES + watching + arguments.threads as usize * FILES_OF_A_THREAD;
    let users = users(arguments, mode, limit.saturating_sub(files))?;
    // An open loop makes connections when they are needed.
    let connections = connections(arguments)?;
    if connections.is_some() || !matches!(mode, Mode::Open { .. }) {
        enough_open_files(users, connections, targets.len(), files, limit)?;
    }
    separate_files(arguments)?;
    let samples = Place::open("--out", arguments.out.as_deref())?;
    let machine = Place::open("--machine", arguments.machine.as_deref())?;
    if let Some(CpuList(cpus)) = &arguments.cpu {
        limits::pin(cpus).or_input("--cpu: the generator cannot run there")?;
    }
    stop::catch_signals().or_failed("signals cannot be caught")?;

    let seed = arguments.seed.unwrap_or_else(|| fastrand::u64(..1 << 53));
    let budget = Arc::new(match arguments.requests {
        Some(requests) => Budget::each(requests, targets.len()),
        None => Budget::unlimited(),
    });
    let plan = Plan {
        targets: targets.len(),
        users,
        slice: nanoseconds(arguments.slice),
        warm_up: nanoseconds(arguments.warmup),
        window: match arguments.requests {
            Some(_) => Nanoseconds::MAX,
            None => nanoseconds(arguments.duration),
        },
        seed,
    };
    let (schedule, capacity): (Box<dyn Schedule>, _) = if arguments.capacity {
        let (search, found) = Search::new(seed, users);
        (Box::new(search), Some(found))
    } else {
        (Box::new(Rounds::new(plan, budget.clone())), None)
    };
    let settings = Settings {
        targets,
        per_request: arguments.connection == Reuse::PerRequest,
        timeout: nanoseconds(arguments.timeout),
        budget,
        clock: Clock::start(),
    };
    let session = Session {
        settings,
        mode,
        users,
        threads: arguments.threads as usize,
        connections,
        schedule,
        watched,
        samples,
        machine,
        live: Live::new(
            arguments.json,
            if arguments.capacity { Duration::ZERO } else { arguments.warmup },
        ),
    };
    let summaries = session.carry_out()?;
    let capacity = capacity.map(|found| found.get().copied());
    if capacity == Some(None) && stop::signal().is_none() {
        return Err(Failure::work(format_args!(
            "there is no capacity: none of the requests succeeded ({}); see what the service \
             answers to such a request",
            summaries[0].errors_by_kind()
        )));
    }
    let result = if arguments.json {
        let summaries = if arguments.capacity { &[] } else { summaries.as_slice() };
        format!("{}\n", report::json(summaries, capacity.flatten(), seed))
    } else if let Some(found) = capacity {
        report::capacity(found)
    } else {
        format!("{}seed {seed}\n", report::table(&summaries, mode != Mode::Closed))
    };
    tare_command::print(result)?;
    Ok(match stop::signal() {
        Some(signal) => ExitCode::from(128 + signal as u8),
        None => ExitCode::SUCCESS,
    })
}

fn mode(arguments: &Http) -> Result<Mode, Failure> {
    match (arguments.mode, arguments.rate) {
        (arguments::Mode::Closed, None) => Ok(Mode::Closed),
        (arguments::Mode::Closed, Some(_)) => {
            Err(Failure::input("--rate needs --mode constant or --mode open"))
        }
        (arguments::Mode::Constant, Some(rate)) => Ok(Mode::Constant { rate }),
        (arguments::Mode::Open, Some(rate)) => Ok(Mode::Open { rate }),
        (_, None) => Err(Failure::input("--mode constant and --mode open need --rate")),
    }
}

/// The most users, when there are files for so many connections.
fn users(arguments: &Http, mode: Mode, connections: usize) -> Result<usize, Failure> {
    let unless_given = match mode {
        _ if arguments.capacity => MOST_USERS.min(connections),
        Mode::Open { .. } => 256.max(arguments.threads as usize),
        Mode::Closed | Mode::Constant { .. } => 1,
    };
    let users = arguments.users.map_or(unless_given, |users| users as usize);
    if (arguments.threads as usize) > users {
        return Err(Failure::input(format_args!(
            "--threads {}: there is work for {users} at most, one for each of --users",
            arguments.threads
        )));
    }
    Ok(users)
}

/// Connections of HTTP/2; without them it is HTTP/1.1.
fn connections(arguments: &Http) -> Result<Option<usize>, Failure> {
    let given = arguments.connections;
    match arguments.http {
        Version::One if given.is_some() => Err(Failure::input(
            "--connections is for --http 2: in HTTP/1.1 each of --users has a connection",
        )),
        Version::One => Ok(None),
        Version::Two if arguments.connection == Reuse::PerRequest => {
            Err(Failure::input("--connection per-request is for --http 1.1"))
        }
        Version::Two if given.is_some_and(|given| given < arguments.threads) => {
            Err(Failure::input(format_args!(
                "--threads {}: each needs one of --connections",
                arguments.threads
            )))
        }
        Version::Two => Ok(Some(given.unwrap_or(arguments.threads) as usize)),
    }
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
        "{}: with connections to all targets, threads and watched processes that needs {needed} \
         open files, and the limit is {limit}: raise it (ulimit -n), or lower the number",
        connections.map_or(format!("--users {users}"), |n| format!("--connections {n}"))
    )))
}

/// Two streams in one file would be none; a device takes both.
fn separate_files(arguments: &Http) -> Result<(), Failure> {
    match &arguments.out {
        Some(out)
            if arguments.machine.as_ref() == Some(out) && (out.is_file() || !out.exists()) =>
        {
            Err(Failure::input(format_args!(
                "--out and --machine are both {}: give each its own file",
                out.display()
            )))
        }
        _ => Ok(()),
    }
}

fn targets(arguments: &Http) -> Result<Arc<[Target]>, Failure> {
    let mut named: Vec<(String, Url)> = Vec::new();
    if let Some(url) = &arguments.url {
        named.push(("default".to_owned(), Url::parse(url).map_err(Failure::input)?));
    }
    for target in &arguments.target {
        if named.iter().any(|(name, _)| *name == target.name) {
            return Err(Failure::input(format_args!(
                "two targets have the name '{}'",
                target.name
            )));
        }
        named.push((target.name.clone(), target.url.clone()));
    }
    let tls = tls_config(arguments, named.iter().any(|(_, url)| url.tls))?;
    let body = read(arguments.body.as_deref(), "--body")?;
    let method = match (&arguments.method, &body) {
        (Some(method), _) => method.clone(),
        (None, Some(_)) => "POST".to_owned(),
        (None, None) => "GET".to_owned(),
    };
    let message = Message {
        method,
        headers: arguments.header.clone(),
        body,
        close: arguments.connection == Reuse::PerRequest,
        for_http2: arguments.http == Version::Two,
    };
    let expected = Expected {
        statuses: arguments.expect_status.clone(),
        body: read(arguments.expect_body.as_deref(), "--expect-body")?,
    };
    let (targets, refused): (Vec<_>, Vec<_>) = named
        .into_iter()
        .map(|(name, url)| {
            let tls = tls.as_ref().filter(|_| url.tls);
            let tls = tls.map(|config| Tls::new(config, &url.host)).transpose()?;
            Target::find(name, &url, tls, &message, &expected, arguments.timeout)
        })
        .collect::<Result<Vec<_>, _>>()?
        .into_iter()
        .unzip();
    // With another target there is something to measure: then the failure to connect
    // is the outcome of each request to this one.
    let refused: Vec<_> = refused.into_iter().collect::<Option<_>>().unwrap_or_default();
    match refused.into_iter().next() {
        Some(failure) => Err(failure),
        None => Ok(targets.into()),
    }
}

/// What the sessions have in common, if any of the targets has TLS.
fn tls_config(arguments: &Http, is_needed: bool) -> Result<Option<ClientConfig>, Failure> {
    if !is_needed {
        return match (&arguments.ca, arguments.insecure) {
            (None, false) => Ok(None),
            _ => Err(Failure::input("--ca and --insecure need a URL with https://")),
        };
    }
    let trust = match &arguments.ca {
        _ if arguments.insecure => Trust::Anybody,
        Some(file) => Trust::File(file),
        None => Trust::System,
    };
    let protocol = match arguments.http {
        Version::One => tls::HTTP1,
        Version::Two => tls::HTTP2,
    };
    trust.config(protocol).map(Some)
}

/// The processes to watch, by target.
fn watched(arguments: &Http, targets: &[Target]) -> Result<Vec<Vec<Process>>, Failure> {
    let mut processes: Vec<_> = targets.iter().map(|_| Vec::new()).collect();
    for watched in &arguments.watch {
        let Some(at) = targets.iter().position(|target| target.name == watched.name) else {
            return Err(Failure::input(format_args!(
                "--watch {}: there is no target of this name",
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

fn read(path: Option<&Path>, option: &str) -> Result<Option<Vec<u8>>, Failure> {
    path.map(|path| std::fs::read(path).or_input(format_args!("{option} {}", path.display())))
        .transpose()
}

fn nanoseconds(time: Duration) -> Nanoseconds {
    Nanoseconds::try_from(time.as_nanos()).unwrap_or(Nanoseconds::MAX)
}
