// SPDX-License-Identifier: Apache-2.0
//! Traces until it should stop, and prints what was found.

use crate::arguments::Arguments;
use crate::show::live_view;
use crate::show::output;
use crate::source::{self, Source, needs_intervals};
use std::io::{self, IsTerminal, Write};
use std::os::fd::{AsFd, AsRawFd};
use std::process::ExitCode;
use std::time::{Duration, Instant};
use tare_command::terminal::Output;
use tare_command::{Failure, ResultExt, Signals};
use tare_map::{Missing, Part};

/// Room for new edges is made this often without readings.
const BETWEEN_ROOM: Duration = Duration::from_secs(1);

pub fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let signals =
        Signals::take(&[libc::SIGINT, libc::SIGTERM, libc::SIGHUP]).or_failed("signals")?;
    let has_view =
        arguments.wants_view() && io::stdout().is_terminal() && io::stdin().is_terminal();
    if has_view && arguments.tracer_stats {
        return Err(Failure::input(
            "--tracer-stats: the live view does not show it; add --duration, --json or --jsonl",
        ));
    }
    let has_intervals = has_view || arguments.jsonl || needs_intervals(source::method(arguments));
    if arguments.interval.is_some() && !has_intervals {
        return Err(Failure::input(
            "--interval: edges are read once, at the end; add --jsonl, or omit it",
        ));
    }
    let mut source = Source::start(arguments)?;
    if has_view {
        live_view::run(&mut source, &signals, arguments.interval())?;
        return Ok(ExitCode::SUCCESS);
    }
    if arguments.duration.is_none() && !arguments.jsonl {
        tare_command::say("tracing until Ctrl-C");
    }
    let begin = Instant::now();
    let end = arguments.duration.map(|duration| begin + duration);
    if arguments.jsonl {
        lines(arguments, &mut source, &signals, begin, end)?;
        return Ok(ExitCode::SUCCESS);
    }
    let has_readings = needs_intervals(source.method());
    loop {
        let interval = if has_readings { arguments.interval() } else { BETWEEN_ROOM };
        let next = Instant::now() + interval;
        if wait(&signals, next.min(end.unwrap_or(next)), &mut source)
            || end.is_some_and(|end| end <= Instant::now())
        {
            break;
        }
        if has_readings {
            source.read().map_err(Failure::work)?;
        } else {
            source.evict_idle_edges().map_err(Failure::work)?;
        }
    }
    let reading = source.read_now().map_err(Failure::work)?;
    let seconds = begin.elapsed().as_secs_f64();
    let cost = arguments.tracer_stats.then(|| source.cost());
    if !arguments.json
        && let Some(missing) = reading.describe_missing()
    {
        tare_command::say(missing);
    }
    if arguments.json {
        let text = output::json::whole(source.method(), &reading, seconds, cost.as_ref());
        tare_command::print(text.or_failed("the edges were not printed")?)?;
    } else if arguments.csv {
        tare_command::print(output::csv::whole(&reading))?;
    } else if arguments.dot {
        tare_command::print(output::dot::whole(&reading))?;
    } else if arguments.mermaid {
        tare_command::print(output::mermaid::whole(&reading))?;
    } else {
        let cost = cost.as_ref().map(output::text::cost).unwrap_or_default();
        tare_command::print(output::text::table(&reading) + &cost)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// One line per interval; the last one has everything.
fn lines(
    arguments: &Arguments,
    source: &mut Source,
    signals: &Signals,
    begin: Instant,
    end: Option<Instant>,
) -> Result<(), Failure> {
    let (mut due, mut missed) = (begin, 0);
    for interval in 1.. {
        due += arguments.interval();
        while due <= Instant::now() {
            due += arguments.interval();
            missed += 1;
        }
        let is_last = wait(signals, end.map_or(due, |end| end.min(due)), source)
            || end.is_some_and(|end| end <= Instant::now());
        let reading = if is_last { source.read_now() } else { source.read() };
        let mut reading = reading.map_err(Failure::work)?;
        if missed > 0 {
            let reason = format!("{missed} intervals (a reading or the output took longer)");
            reading.missing.push(Missing::new(Part::Intervals, reason));
        }
        let cost = arguments.tracer_stats.then(|| source.cost());
        let seconds = begin.elapsed().as_secs_f64();
        let line =
            output::json::line(source.method(), &reading, seconds, cost.as_ref(), interval, missed);
        let line = line.or_failed("the edges were not printed")?;
        let mut stdout = Output::lock();
        match stdout.write_all(line.as_bytes()).and_then(|()| stdout.flush()) {
            // The reader has read enough.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => return Ok(()),
            written => written.or_failed("the edges were not printed")?,
        }
        if is_last {
            break;
        }
    }
    Ok(())
}

/// Until `end`, or a signal: then it is true. Events are taken meanwhile.
fn wait(signals: &Signals, end: Instant, source: &mut Source) -> bool {
    loop {
        let rest = end.saturating_duration_since(Instant::now());
        if signals.next().is_some() {
            return true;
        }
        if rest.is_zero() {
            return false;
        }
        let rest = (rest + Duration::from_micros(999)).as_millis().min(i32::MAX as u128) as i32;
        let readable = |fd: i32| libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
        // A negative descriptor is ignored.
        let mut ready =
            [readable(signals.as_fd().as_raw_fd()), readable(source.events_fd().unwrap_or(-1))];
        // SAFETY: the structures are valid for the call.
        unsafe { libc::poll(ready.as_mut_ptr(), ready.len() as libc::nfds_t, rest) };
        source.take_events();
    }
}
