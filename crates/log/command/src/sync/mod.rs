// SPDX-License-Identifier: Apache-2.0
//! Relates the clocks of two hosts: one serves its clock, the other asks again and again, and
//! takes the quickest answer.

mod exchange;
mod packet;
mod serve;

use crate::arguments;
use crate::format;
use crate::log_file::LogFile;
use crate::procfs;
use exchange::Exchange;
use packet::{Answer, BYTES, Refused, VERSION};
use serde::Serialize;
use std::io;
use std::net::{SocketAddr, ToSocketAddrs, UdpSocket};
use std::path::Path;
use std::process::ExitCode;
use std::thread::sleep;
use std::time::{Duration, Instant};
use tare_clock::{Snapshot, Source};
use tare_command::{Failure, NewFile, ResultExt};
use tare_log_file::{Codec, Kind, Moment, Relation};

/// In the range that nobody is given for good.
const PORT: u16 = 52_525;

/// Questions, how long each waits for its answer, and how long all take at most.
const QUESTIONS: u64 = 100;
const PATIENCE: Duration = Duration::from_secs(1);
const LONGEST: Duration = Duration::from_secs(5);

/// Where nobody has answered until then, nobody will.
const SILENCE: Duration = Duration::from_secs(2);

/// Between two questions: what disturbs one should not disturb the next.
const PAUSE: Duration = Duration::from_millis(5);

pub fn sync(arguments: &arguments::Sync) -> Result<ExitCode, Failure> {
    match &arguments.serve {
        Some(address) => serve::serve(&resolved(address, "--serve")?),
        None => ask(arguments, arguments.host.as_deref().unwrap_or_default()),
    }
}

/// Of ADDRESS or NAME, with :PORT or without, all that it stands for.
fn resolved(text: &str, what: &str) -> Result<Vec<SocketAddr>, Failure> {
    let found = text.to_socket_addrs().or_else(|_| (text, PORT).to_socket_addrs());
    Ok(found.or_input(format_args!("{what} {text}"))?.collect())
}

/// What the quickest of all exchanges says.
struct Best {
    exchange: Exchange,
    answer: Answer,
    round_trip: i64,
    /// This host's clocks, just after: the system clock runs at another rate than the monotonic.
    clocks: Snapshot,
}

/// What `--json` prints.
#[derive(Serialize)]
struct Report<'relation> {
    #[serde(flatten)]
    relation: &'relation Relation,
    /// Of the answer that the relation is of.
    round_trip_ns: i64,
    system_clock_ahead_ns: i64,
    answers: u64,
}

fn ask(arguments: &arguments::Sync, host: &str) -> Result<ExitCode, Failure> {
    let addresses = resolved(host, "HOST")?;
    let file = arguments.file.as_deref();
    // One that is not there is made when there is something to keep.
    let log_file = file.filter(|file| file.exists());
    let log_file = log_file.map(|file| LogFile::open("--file", file, Codec::None)).transpose()?;
    let (best, answers) = first_that_answers(&addresses, host)?;
    let clocks = best.clocks;
    let (here_ns, there_ns) = best.exchange.middles();
    let error_ns = best.exchange.error().unwrap_or(i64::MAX);
    let system_ns = best
        .answer
        .realtime_at(there_ns)
        .and_then(|then| then.checked_sub(clocks.realtime_ns - (clocks.monotonic_ns - here_ns)))
        .ok_or_else(|| {
            Failure::work(format_args!("HOST {host}: its answer contains impossible times"))
        })?;
    let relation = Relation {
        here: Moment { host: procfs::host(), boot: procfs::boot(), monotonic_ns: here_ns },
        there: Moment { host: best.answer.host, boot: best.answer.boot, monotonic_ns: there_ns },
        error_ns,
    };
    if let Some(file) = file {
        keep(&relation, file, log_file)?;
    }
    if arguments.json {
        let report = Report {
            relation: &relation,
            round_trip_ns: best.round_trip,
            system_clock_ahead_ns: system_ns,
            answers,
        };
        tare_command::print_json(serde_json::json!(report))?;
    } else {
        let ahead = if system_ns < 0 { "behind" } else { "ahead" };
        tare_command::print(format_args!(
            "{}: system clock {} {ahead}, known to within {} (least round trip {} of {answers})\n",
            format::plain(&relation.there.host),
            format::time(Some(system_ns.unsigned_abs() as f64)),
            format::time(Some(error_ns as f64)),
            format::time(Some(best.round_trip as f64)),
        ))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// In a file that is there, or is made for it.
fn keep(relation: &Relation, file: &Path, log_file: Option<LogFile>) -> Result<(), Failure> {
    // It relates monotonic clocks: of this host's, the system time is read with it.
    let text = serde_json::to_vec(relation).or_failed("the relation")?;
    let write = |log_file: &mut LogFile| {
        let written = log_file.clock().and_then(|()| log_file.metadata(Kind::Relation, 0, &text));
        written.or_failed("the result was not written")
    };
    if let Some(mut log_file) = log_file {
        return write(&mut log_file);
    }
    let what = format!("--file {}", file.display());
    let new = NewFile::create(file).or_input(&what)?;
    write(&mut LogFile::of(new.file().or_failed(&what)?, &what, file, Codec::None)?)?;
    new.finish().or_failed(&what)
}

/// Takes packets of this address alone.
fn socket(address: SocketAddr) -> io::Result<UdpSocket> {
    let any: SocketAddr =
        if address.is_ipv4() { ([0, 0, 0, 0], 0).into() } else { ([0u16; 8], 0).into() };
    let socket = UdpSocket::bind(any)?;
    socket.connect(address)?;
    Ok(socket)
}

/// A name may stand for addresses that nobody serves at, as `localhost` does for ::1.
fn first_that_answers(addresses: &[SocketAddr], host: &str) -> Result<(Best, u64), Failure> {
    let mut found = Err(no_server(host, "listens"));
    for address in addresses {
        found = socket(*address)
            .or_failed(format_args!("HOST {host}"))
            .and_then(|socket| best(&socket, host));
        if found.is_ok() {
            break;
        }
    }
    found
}

fn no_server(host: &str, does: &str) -> Failure {
    Failure::work(format_args!(
        "HOST {host}: no program {does}; run tare log sync --serve ADDRESS there"
    ))
}

fn best(socket: &UdpSocket, host: &str) -> Result<(Best, u64), Failure> {
    let begin = Instant::now();
    // An answer to another program's question is none of this one's.
    let first = Snapshot::take().realtime_ns as u64;
    let (mut best, mut answers): (Option<Best>, u64) = (None, 0);
    for number in (0..QUESTIONS).map(|count| first.wrapping_add(count)) {
        let silent = best.is_none() && begin.elapsed() >= SILENCE;
        if silent || begin.elapsed() >= LONGEST {
            break;
        }
        let Some((exchange, answer)) = exchanged(socket, number, host)? else { continue };
        let clocks = Snapshot::take();
        let Some(round_trip) = exchange.round_trip() else { continue };
        answers += 1;
        if best.as_ref().is_none_or(|best| round_trip < best.round_trip) {
            best = Some(Best { exchange, answer, round_trip, clocks });
        }
        sleep(PAUSE);
    }
    best.map(|best| (best, answers)).ok_or_else(|| no_server(host, "answers"))
}

/// One question; `None` where no answer comes in time.
fn exchanged(
    socket: &UdpSocket,
    number: u64,
    host: &str,
) -> Result<Option<(Exchange, Answer)>, Failure> {
    let failed = |error: io::Error| match error.kind() {
        io::ErrorKind::ConnectionRefused => no_server(host, "listens"),
        _ => Failure::work(format_args!("HOST {host}: {error}")),
    };
    let now = || Source::Monotonic.now() as i64;
    let (begin, asked) = (Instant::now(), now());
    socket.send(&packet::question(number)).map_err(failed)?;
    loop {
        let Some(left) = PATIENCE.checked_sub(begin.elapsed()).filter(|left| !left.is_zero())
        else {
            return Ok(None);
        };
        socket.set_read_timeout(Some(left)).map_err(failed)?;
        let mut bytes = [0; BYTES];
        let length = match socket.recv(&mut bytes) {
            Ok(length) => length,
            Err(error) if is_timeout(&error) => continue,
            Err(error) => return Err(failed(error)),
        };
        let answered = now();
        match Answer::read(&bytes[..length]) {
            Ok(answer) if answer.number == number => {
                let Answer { received_ns: received, sent_ns: sent, .. } = answer;
                return Ok(Some((Exchange { asked, received, sent, answered }, answer)));
            }
            // One that came too late, or is no answer.
            Ok(_) | Err(Refused::Other) => {}
            Err(Refused::Version(other)) => {
                return Err(Failure::work(format_args!(
                    "HOST {host}: it uses protocol version {other}, and this program {VERSION}"
                )));
            }
        }
    }
}

fn is_timeout(error: &io::Error) -> bool {
    use io::ErrorKind::{Interrupted, TimedOut, WouldBlock};
    matches!(error.kind(), Interrupted | TimedOut | WouldBlock)
}
