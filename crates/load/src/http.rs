// SPDX-License-Identifier: Apache-2.0
//! `tare-load http`: from arguments to threads, and to the summary at the end.

use crate::arguments::{Http, Mode, Reuse};
use crate::budget::Budget;
use crate::clock::{Clock, Nanoseconds};
use crate::crew::{Crew, Lead, Sender};
use crate::live::Live;
use crate::log::Log;
use crate::readings::Gauges;
use crate::recorder::{Output, Recorder};
use crate::report;
use crate::response::Expected;
use crate::slices::{Plan, Rounds};
use crate::solo::Solo;
use crate::stop;
use crate::summary::Summary;
use crate::tables;
use crate::target::{Message, Target};
use crate::url::Url;
use crate::values::CpuList;
use rtrb::RingBuffer;
use serde_json::json;
use std::path::Path;
use std::process::ExitCode;
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;
use tare_command::{Failure, ResultExt};
use tare_tables::{MACHINE, SAMPLES};

/// Slices that wait for the recorder: several seconds of the shortest sensible ones.
const SLICES: usize = 1 << 16;

pub fn run(arguments: &Http) -> Result<ExitCode, Failure> {
    let targets = targets(arguments)?;
    let watched = watched(arguments, &targets)?;
    if let Some(CpuList(cpus)) = &arguments.cpu {
        pin(cpus)?;
    }
    stop::catch_signals().or_failed("signals cannot be caught")?;
    let clock = Clock::start();
    let seed = arguments.seed.unwrap_or_else(|| fastrand::u64(..1 << 53));
    let budget = Arc::new(match arguments.requests {
        Some(requests) => Budget::each(requests, targets.len()),
        None => Budget::unlimited(),
    });
    let plan = Plan {
        targets: targets.len(),
        users: arguments.users.unwrap_or(1) as usize,
        slice: nanoseconds(arguments.slice),
        warm_up: nanoseconds(arguments.warmup),
        window: match arguments.requests {
            Some(_) => Nanoseconds::MAX,
            None => nanoseconds(arguments.duration),
        },
        seed,
    };
    let threads = 1;
    let (measured, slices) = RingBuffer::new(SLICES);
    let (logs, consumers): (Vec<_>, Vec<_>) = (0..threads).map(|_| Log::new()).unzip();
    let mut recorder = Recorder {
        samples: Output::create(arguments.out.as_deref(), &SAMPLES, &tables::SAMPLES)?,
        machine: Output::create(arguments.machine.as_deref(), &MACHINE, &tables::MACHINE)?,
        logs: consumers,
        measured: slices,
        summaries: targets.iter().map(|target| Summary::new(target.name.clone())).collect(),
        live: Live::new(arguments.json),
    };

    let crew = Arc::new(Crew::new(threads, clock));
    let (announce, announced) = mpsc::channel();
    let mut lead_places = Vec::new();
    let mut handles = Vec::new();
    for mut log in logs {
        let (place, lead) = mpsc::channel::<Option<Lead>>();
        lead_places.push(place);
        let (crew, announce) = (crew.clone(), announce.clone());
        let mut sender: Box<dyn Sender + Send> = Box::new(Solo::new(
            targets.clone(),
            arguments.connection == Reuse::PerRequest,
            arguments.timeout,
            budget.clone(),
            clock,
        ));
        handles.push(thread::spawn(move || {
            let _ = announce.send(thread_identifier());
            if let Ok(lead) = lead.recv() {
                crew.work(&mut *sender, &mut log, lead);
            }
        }));
    }
    drop(announce);
    let identifiers: Vec<_> = announced.iter().take(threads).collect();
    let gauges =
        Gauges::open(&identifiers, &watched).or_input("a process of --watch cannot be read")?;
    let mut lead = Some(Lead { schedule: Box::new(Rounds::new(plan, budget)), gauges, measured });
    for place in lead_places {
        let _ = place.send(lead.take());
    }
    recorder.record(&handles).inspect_err(|_| stop::ask())?;
    if arguments.json {
        let targets: Vec<_> = recorder.summaries.iter().map(Summary::to_json).collect();
        println!("{}", json!({"targets": targets, "capacity": null, "seed": seed}));
    } else {
        print!("{}", report::table(&recorder.summaries, arguments.mode != Mode::Closed));
        println!("seed {seed}");
    }
    Ok(match stop::signal() {
        Some(signal) => ExitCode::from(128 + signal as u8),
        None => ExitCode::SUCCESS,
    })
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
    };
    let expected = Expected {
        statuses: arguments.expect_status.clone(),
        body: read(arguments.expect_body.as_deref(), "--expect-body")?,
    };
    let (targets, refused): (Vec<_>, Vec<_>) = named
        .into_iter()
        .map(|(name, url)| Target::find(name, url, &message, &expected, arguments.timeout))
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

/// The processes to watch, by target.
fn watched(arguments: &Http, targets: &[Target]) -> Result<Vec<Vec<libc::pid_t>>, Failure> {
    let mut pids = vec![Vec::new(); targets.len()];
    for watched in &arguments.watch {
        let Some(at) = targets.iter().position(|target| target.name == watched.name) else {
            return Err(Failure::input(format_args!(
                "--watch {}: there is no target of this name",
                watched.name
            )));
        };
        pids[at].extend(&watched.pids);
    }
    Ok(pids)
}

fn read(path: Option<&Path>, option: &str) -> Result<Option<Vec<u8>>, Failure> {
    path.map(|path| {
        std::fs::read(path).or_input(format_args!("{option} {} was not read", path.display()))
    })
    .transpose()
}

fn pin(cpus: &[usize]) -> Result<(), Failure> {
    // SAFETY: all zeroes is the empty set.
    let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    for cpu in cpus {
        // SAFETY: the number was checked against the size of the set.
        unsafe { libc::CPU_SET(*cpu, &mut set) };
    }
    // SAFETY: `set` is valid for its size; 0 is the calling thread, and those that it
    // starts inherit the set.
    if unsafe { libc::sched_setaffinity(0, size_of_val(&set), &set) } != 0 {
        let error = std::io::Error::last_os_error();
        return Err(Failure::input(format_args!("--cpu: this machine has no such CPU: {error}")));
    }
    Ok(())
}

fn thread_identifier() -> libc::pid_t {
    // SAFETY: the call has no arguments and cannot fail.
    unsafe { libc::gettid() }
}

fn nanoseconds(time: Duration) -> Nanoseconds {
    Nanoseconds::try_from(time.as_nanos()).unwrap_or(Nanoseconds::MAX)
}
