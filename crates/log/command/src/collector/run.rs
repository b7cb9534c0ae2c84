// SPDX-License-Identifier: Apache-2.0
use super::compressor::Compressor;
use super::event_loop::Collector;
use super::poll_thread::PollThread;
use crate::arguments;
use crate::collector::accept::acceptor::{Acceptor, Admission};
use crate::collector::accept::listening_socket;
use crate::collector::quotas::descriptor_limit::DescriptorLimit;
use crate::collector::rules::rules_file::RulesFile;
use crate::log_file::LogFile;
use crate::same_file::is_same;
use serde::Serialize;
use std::os::fd::{AsFd, AsRawFd};
use std::process::{Command, ExitCode, ExitStatus};
use tare_clock::Source;
use tare_command::{Child, Failure, ResultExt, Signals, exit_code, say};

/// Names the socket to programs.
const VARIABLE: &str = "TARE_LOG";

/// Says what they read times from.
const CLOCK: &str = "TARE_LOG_CLOCK";

const LIMIT: &str = "the limit of open files";

const SIGNALS: &[i32] = &[libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT, libc::SIGCHLD];

/// A program, and the collector beside it.
pub fn run(arguments: &arguments::Run) -> Result<ExitCode, Failure> {
    let signals = Signals::take(SIGNALS).or_failed("signals")?;
    let limit = DescriptorLimit::raise().or_failed(LIMIT)?;
    let acceptor = Acceptor::open(&listening_socket::of_ones_own()?, Admission::Descendants)?;
    let mut collector = collector(&arguments.collecting, acceptor)?;
    let mut command = Command::new(&arguments.command[0]);
    command.args(&arguments.command[1..]).env(VARIABLE, collector.acceptor().path());
    limit.give(&mut command);
    if let Some(clock) = arguments.clock {
        command.env(CLOCK, Source::from(clock).name());
    }
    let name = arguments.command[0].to_string_lossy();
    let mut child =
        Child::spawn(&mut command, &signals).or_input(format_args!("COMMAND {name}"))?;
    let poll_thread = poll_thread(&collector, &signals)?;
    let mut status: Option<ExitStatus> = None;
    while status.is_none() {
        collector.turn();
        collector.sleep(&poll_thread);
        while let Some(signal) = signals.next() {
            // What the terminal sent went to the program as well; SIGCHLD is for us.
            if signal.number != libc::SIGCHLD && !signal.from_kernel {
                child.send(signal.number);
            }
        }
        status = child.ended().or_failed("the program cannot be waited for")?;
    }
    let code = status.map_or(1, exit_code);
    match end(&mut collector, arguments.collecting.json) {
        Err(failure) if code != 0 => say(failure),
        ended => ended?,
    }
    if !arguments.collecting.json {
        if collector.programs == 0 {
            say("no program logged with libtare_log");
        }
        if collector.left > 0 {
            say(format_args!("programs that continue without a collector: {}", collector.left));
        }
    }
    Ok(ExitCode::from(code))
}

/// A collector for whoever comes.
pub fn collect(arguments: &arguments::Collect) -> Result<ExitCode, Failure> {
    let signals = Signals::take(SIGNALS).or_failed("signals")?;
    DescriptorLimit::raise().or_failed(LIMIT)?;
    let acceptor = Acceptor::open(&arguments.socket, Admission::Everyone)?;
    let mut collector = collector(&arguments.collecting, acceptor)?;
    let poll_thread = poll_thread(&collector, &signals)?;
    collector.search();
    loop {
        collector.turn();
        collector.sleep(&poll_thread);
        if signals.next().is_some_and(|signal| signal.number != libc::SIGCHLD) {
            break;
        }
    }
    end(&mut collector, arguments.collecting.json)?;
    Ok(ExitCode::SUCCESS)
}

fn collector(arguments: &arguments::Collecting, acceptor: Acceptor) -> Result<Collector, Failure> {
    let rules = RulesFile::open(arguments.rules.as_deref())?;
    let log_file = LogFile::open("--out", &arguments.out, arguments.codec.into())?;
    log_file.claim().or_input(format_args!("--out {}", arguments.out.display()))?;
    let compressor = Compressor::new(arguments.workers.into()).or_failed("--workers")?;
    let mut collector = Collector::new(acceptor, log_file, compressor, rules);
    if let Some(file) = &arguments.costs {
        if is_same(&arguments.out, file) {
            let what = file.display();
            return Err(Failure::input(format_args!(
                "--costs {what}: it is the file of events; give another"
            )));
        }
        collector.write_costs(file)?;
    }
    Ok(collector)
}

/// Who wakes the collector when somebody comes, a signal arrives or the rules change.
fn poll_thread(collector: &Collector, signals: &Signals) -> Result<PollThread, Failure> {
    let rules = collector.rules().fd();
    let descriptors = [collector.acceptor().fd(), signals.as_fd().as_raw_fd(), rules];
    PollThread::start(descriptors).or_failed("a thread")
}

/// What `--json` prints at the end.
#[derive(Serialize)]
struct Summary {
    programs: u64,
    events: u64,
    lost: u64,
    unserved: u64,
    deferred: u64,
    unwritten: u64,
    /// Programs that went on when the collector ended.
    left: u64,
    /// In the file.
    bytes: u64,
}

fn end(collector: &mut Collector, json: bool) -> Result<(), Failure> {
    let finished = collector.finish();
    let unwritten = collector.unwritten;
    let file = collector.file();
    let finished = finished.or_failed(match unwritten {
        0 => format!("{file}: the remaining events were not written"),
        events => format!("{file}: {events} remaining events were not written"),
    });
    let counts = collector.event_counts();
    if json {
        let summary = Summary {
            programs: collector.programs,
            events: counts.events,
            lost: counts.lost,
            unserved: counts.unserved,
            deferred: counts.deferred,
            unwritten,
            left: collector.left,
            bytes: collector.bytes(),
        };
        eprintln!("{}", serde_json::json!(summary));
        return finished;
    }
    let overrun = counts.lost - counts.unanswered;
    if overrun.max(counts.unserved) > 0 {
        say(format_args!(
            "{} events collected; {} were lost to full rings (TARE_LOG_RING enlarges them), {} to \
             missing rings of too many threads",
            counts.events, overrun, counts.unserved
        ));
    }
    if counts.unanswered > 0 {
        say(format_args!("{} round trips got no answer in time", counts.unanswered));
    }
    if counts.deferred > 0 {
        say(format_args!(
            "{} events of handler id went through rings, because the file could not be written \
             directly",
            counts.deferred
        ));
    }
    finished
}
