// SPDX-License-Identifier: Apache-2.0
use crate::arguments::Run;
use crate::{launch, stats};
use std::ffi::OsStr;
use std::io::Write;
use std::os::fd::{AsFd, AsRawFd};
use std::process::ExitCode;
use tare_command::{
    CostsFile, Failure, ResultExt, SegmentError, Signals, exit_code, preload, program, say,
};
use tare_link_segment::{Counter, Handover, LinkSettings, Statistics, VERSION};
use tare_shm::{Refusal, Segment, move_up, service};
use tare_tables::Vacant;

pub const LAYER: &str = "the library of tare link";
const LIBRARY: &str = "libtare_link.so";

/// Signals that the program gets from this one, for which this one must not end.
const FORWARDED: [i32; 10] = [
    libc::SIGTERM,
    libc::SIGINT,
    libc::SIGQUIT,
    libc::SIGHUP,
    libc::SIGUSR1,
    libc::SIGUSR2,
    libc::SIGWINCH,
    libc::SIGALRM,
    libc::SIGTTIN,
    libc::SIGTTOU,
];

/// Runs the program and prints what was linked.
pub fn run(arguments: &Run) -> Result<ExitCode, Failure> {
    let name = arguments.command.first().map_or(OsStr::new(""), |name| name);
    let found = program::check(name, LAYER)?;
    let library = preload::library(LIBRARY)?;
    let signals = Signals::take(&[&FORWARDED[..], &[libc::SIGCHLD]].concat())
        .or_failed("signals cannot be received")?;
    let (statistics, handover) = create(arguments.eager).map_err(|refusal| {
        let reason = SegmentError::Refused(refusal);
        Failure::work(format_args!("shared memory could not be created: {reason}"))
    })?;
    apply_settings(arguments, statistics.settings())?;
    let write = |file: Vacant| stats::write(statistics, file);
    let mut costs = match &arguments.costs {
        Some(path) => Some(CostsFile::create(path, write)?),
        None => None,
    };
    let (command, filter) = (&arguments.command, arguments.seccomp);
    let mut child = launch::start(&found, command, &library, handover, filter, &signals)?;
    let status = loop {
        wait(&signals, if costs.is_some() { 1000 } else { -1 });
        while let Some(signal) = signals.next() {
            // What the terminal sent went to the program as well; SIGCHLD is for this one.
            if !signal.from_kernel {
                child.send(signal.number);
            }
        }
        if let Some(status) = child.ended().or_failed("the program cannot be waited for")? {
            break status;
        }
        if let Some(costs) = &mut costs {
            costs.turn(false, write);
        }
    };
    if let Some(costs) = &mut costs {
        costs.renew(write);
    }
    if arguments.stats || arguments.json {
        let text = stats::text(statistics, arguments.json);
        // The program's exit code counts, whether or not anyone reads this.
        let _ = std::io::stderr().write_all(text.as_bytes());
    } else if status.code().is_some() && statistics.get(Counter::Programs) == 0 {
        say(format_args!(
            "the program ran without links, because {} was not loaded or comes from another \
             build. Build both with 'make native'",
            library.display()
        ));
    }
    Ok(ExitCode::from(exit_code(status)))
}

fn apply_settings(arguments: &Run, settings: &LinkSettings) -> Result<(), Failure> {
    let too_many = |option: &str, most: u32| {
        Failure::input(format_args!("{option}: given more than {most} times; give fewer"))
    };
    if !arguments.only.iter().all(|pattern| settings.only(*pattern)) {
        return Err(too_many("--only", 32));
    }
    if !arguments.except.iter().all(|pattern| settings.except(*pattern)) {
        return Err(too_many("--except", 32));
    }
    if !arguments.allow_uid.iter().all(|user| settings.allow(*user)) {
        return Err(too_many("--allow-uid", 16));
    }
    settings.limit_memory(arguments.memory);
    if arguments.no_spin {
        settings.never_spin();
    }
    Ok(())
}

fn create(eager: bool) -> Result<(&'static Statistics, Handover), Refusal> {
    let size = size_of::<Statistics>();
    let (fd, segment) = Segment::create(Statistics::NAME, Statistics::KIND, VERSION, size)?;
    let header = segment.header();
    let (pid, start) = (header.owner_pid, header.owner_start);
    // SAFETY: atomics only, and the segment is writable.
    let statistics = unsafe { segment.at(0) }.ok_or(Refusal::TooSmall)?;
    let fd = move_up(fd);
    // `tare ps` names this process as the one that has the statistics.
    let _ = service::serve(fd);
    Ok((statistics, Handover { pid, start, statistics: fd, eager }))
}

fn wait(signals: &Signals, milliseconds: i32) {
    let fd = signals.as_fd().as_raw_fd();
    let mut place = libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
    // SAFETY: one entry.
    unsafe { libc::poll(&mut place, 1, milliseconds) };
}
