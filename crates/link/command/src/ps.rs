// SPDX-License-Identifier: Apache-2.0
//! The links of all running programs of this user.

use crate::stats;
use serde_json::{Map, Value, json};
use std::collections::HashSet;
use std::io::ErrorKind;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::os::fd::AsRawFd;
use std::path::Path;
use std::process::ExitCode;
use tare_command::{Failure, processes, segments, terminal};
use tare_link_segment::{COUNTERS, Counter, Endpoint, Listed, Reason, Statistics, Totals};
use tare_link_segment::{VERSION, totals};
use tare_shm::{Access, Segment, peer, syscall};

/// The programs that one tare-link started.
struct Run {
    /// Of tare-link.
    pid: u32,
    command: String,
    counts: Vec<(&'static str, u64)>,
    /// What happened how often, and why.
    reasons: Vec<(&'static str, Reason, u64)>,
    reasons_json: Map<String, Value>,
    links: Vec<Row>,
}

struct Row {
    link: Listed,
    /// What was sent and received; `None` if the program is another user's, who could hold whoever
    /// reads its memory, or if this user may not read it.
    totals: Option<[Totals; 2]>,
}

/// Prints the linked connections of this user's programs.
pub fn ps(as_json: bool) -> Result<ExitCode, Failure> {
    let mut seen = HashSet::new();
    let mut runs: Vec<_> = processes::all().flat_map(|pid| of(pid, &mut seen)).collect();
    runs.sort_by_key(|run| run.pid);
    if as_json {
        let runs: Vec<_> = runs.iter().map(Run::to_json).collect();
        tare_command::print_json(json!({ "runs": runs }))?;
    } else {
        tare_command::print(table(&runs))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// The runs of which process `pid` has the statistics open, without those that were seen.
fn of(pid: u32, seen: &mut HashSet<u64>) -> Vec<Run> {
    let own = syscall::geteuid();
    let is_owner = move |user: u32| own == 0 || peer::is_own(user);
    let found = segments::of(pid, Statistics::NAME, Access::ReadOnly, is_owner);
    let new = found.filter(|found| seen.insert(found.inode));
    new.filter_map(|found| {
        let (fd, kind) = (found.fd.as_raw_fd(), Statistics::KIND);
        let segment = Segment::open(fd, kind, VERSION, Access::ReadOnly).ok()?;
        // SAFETY: atomics only, and nothing is written.
        let statistics = unsafe { segment.at::<Statistics>(0) }?;
        Some(Run::read(segment.header().owner_pid, statistics))
    })
    .collect()
}

impl Run {
    fn read(pid: u32, statistics: &Statistics) -> Self {
        let counts =
            Counter::ALL.iter().map(|counter| (counter.name(), statistics.get(*counter))).collect();
        let mut links: Vec<_> = statistics.listing().all().filter_map(Row::read).collect();
        links.sort_by_key(|row| (row.link.process, row.link.ends[0].port, row.link.ends[1].port));
        let reasons = stats::why(statistics).into_iter().flat_map(|(_, title, reasons)| {
            reasons.all().map(move |(reason, count)| (title, reason, count))
        });
        Self {
            pid,
            command: command(pid),
            counts,
            reasons: reasons.collect(),
            reasons_json: stats::reasons_as_json(statistics).collect(),
            links,
        }
    }

    fn to_json(&self) -> Value {
        let mut counts: Map<_, _> =
            self.counts.iter().map(|(name, count)| ((*name).to_owned(), (*count).into())).collect();
        counts.extend(self.reasons_json.clone());
        let links: Vec<_> = self.links.iter().map(Row::to_json).collect();
        json!({"pid": self.pid, "command": self.command, "counts": counts, "links": links})
    }

    fn count(&self, name: &str) -> u64 {
        self.counts.iter().find(|(known, _)| *known == name).map_or(0, |(_, count)| *count)
    }
}

/// The command that tare-link runs, empty if it has exited. Of another user's tare-link it is not
/// known.
fn command(pid: u32) -> String {
    let words = processes::command(pid).unwrap_or_default();
    let words: Vec<_> = words.iter().map(|word| String::from_utf8_lossy(word)).collect();
    let begin = words.iter().position(|word| word == "--").map_or(0, |dashes| dashes + 1);
    words[begin..].join(" ").trim_end().to_owned()
}

impl Row {
    /// `None` if the process does not have the link any more.
    fn read(link: Listed) -> Option<Self> {
        let mut bytes = [0; COUNTERS];
        let into = libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: COUNTERS };
        let from = libc::iovec { iov_base: link.place as *mut _, iov_len: COUNTERS };
        if !processes::is_own(link.process) {
            return Path::new(&format!("/proc/{}", link.process))
                .exists()
                .then_some(Self { link, totals: None });
        }
        let process = i32::try_from(link.process).ok()?;
        // SAFETY: the kernel writes at most `COUNTERS` bytes, and checks the other place.
        let read = unsafe { libc::process_vm_readv(process, &into, 1, &from, 1, 0) };
        if read == COUNTERS as isize {
            return totals(&bytes, link.end).map(|totals| Self { link, totals: Some(totals) });
        }
        let error = std::io::Error::last_os_error();
        (error.kind() == ErrorKind::PermissionDenied).then_some(Self { link, totals: None })
    }

    /// How bytes that are sent now are carried, and why.
    fn state(&self) -> String {
        let Some([sent, received]) = &self.totals else {
            return "unknown: another user's program, or one that this user may not trace (ptrace(2))"
                .to_owned();
        };
        let downgraded = sent.downgraded.map(Reason::text);
        if let Some(reason) = received.left {
            format!("TCP for good, by this end: {}", reason.text())
        } else if let Some(reason) = sent.left {
            format!("TCP for good, by the other end: {}", reason.text())
        } else if sent.upgrades > sent.downgrades {
            let before = downgraded.map(|text| format!(" (before, TCP: {text})"));
            format!("shared memory{}", before.unwrap_or_default())
        } else {
            format!("TCP: {}", downgraded.unwrap_or("nothing sent yet"))
        }
    }

    fn to_json(&self) -> Value {
        let [local, remote] = self.link.ends.map(|end| shown(end).to_string());
        let [sent, received] = [0, 1].map(|way| self.totals.map(|totals| totals[way]));
        json!({
            "pid": self.link.process,
            "local": local,
            "remote": remote,
            "state": self.state(),
            "ring_bytes_sent": sent.map(|sent| sent.ring_bytes),
            "ring_bytes_received": received.map(|received| received.ring_bytes),
            "tcp_bytes_sent": sent.map(|sent| sent.tcp_bytes),
            "tcp_bytes_received": received.map(|received| received.tcp_bytes),
            "messages_sent": sent.map(|sent| sent.messages),
            "messages_received": received.map(|received| received.messages),
            "wakes_sent": sent.map(|sent| sent.wakes),
            "wakes_received": received.map(|received| received.wakes),
            "spins": sent.map(|sent| sent.spins),
            "upgrades": sent.map(|sent| sent.upgrades),
            "downgrades": sent.map(|sent| sent.downgrades),
            "downgraded_because": code(sent.and_then(|sent| sent.downgraded)),
            "left_because": code(received.and_then(|received| received.left)),
            "other_end_left_because": code(sent.and_then(|sent| sent.left)),
        })
    }

    fn cells(&self) -> Vec<String> {
        let [local, remote] = self.link.ends.map(|end| shown(end).to_string());
        let mut cells = vec![self.link.process.to_string(), local, remote];
        match &self.totals {
            None => cells.extend(["-"; 7].map(str::to_owned)),
            Some([sent, received]) => cells.extend([
                sent.ring_bytes.to_string(),
                received.ring_bytes.to_string(),
                (sent.tcp_bytes + received.tcp_bytes).to_string(),
                (sent.messages + received.messages).to_string(),
                (sent.wakes + received.wakes).to_string(),
                sent.spins.to_string(),
                format!("{}/{}", sent.upgrades, sent.downgrades),
            ]),
        }
        cells.push(self.state());
        cells
    }
}

fn code(reason: Option<Reason>) -> Option<&'static str> {
    reason.map(Reason::code)
}

fn shown(end: Endpoint) -> SocketAddr {
    SocketAddr::new(IpAddr::V6(Ipv6Addr::from(end.address)).to_canonical(), end.port)
}

/// The runs, and below them the connections.
fn table(runs: &[Run]) -> String {
    let names = ["programs", "links", "wakes", "spins", "vain_spins", "left", "reset", "refused"];
    let head = std::iter::once("RUN".to_owned())
        .chain(names.iter().map(|name| name.to_uppercase().replace('_', " ")))
        .chain(["COMMAND".to_owned()]);
    let mut first = vec![head.collect::<Vec<_>>()];
    for run in runs {
        let counts = names.iter().map(|name| run.count(name).to_string());
        let command = terminal::printable(&run.command, &[]).into_owned();
        first.push(std::iter::once(run.pid.to_string()).chain(counts).chain([command]).collect());
    }
    let head = [
        "PID",
        "LOCAL",
        "REMOTE",
        "SENT B",
        "RECEIVED B",
        "TCP B",
        "MESSAGES",
        "WAKES",
        "SPINS",
        "UP/DOWN",
        "NOW",
    ];
    let mut second = vec![head.map(str::to_owned).to_vec()];
    second.extend(runs.iter().flat_map(|run| &run.links).map(Row::cells));
    let head = ["RUN", "TIMES", "WHAT", "WHY"].map(str::to_owned).to_vec();
    let mut third = vec![head];
    for run in runs {
        third.extend(run.reasons.iter().map(|(what, reason, count)| {
            vec![
                run.pid.to_string(),
                count.to_string(),
                (*what).to_owned(),
                reason.text().to_owned(),
            ]
        }));
    }
    format!("{}\n{}\n{}", aligned(&first), aligned(&second), aligned(&third))
}

/// Columns of numbers to the right, the last one as it is.
fn aligned(rows: &[Vec<String>]) -> String {
    let columns = rows.first().map_or(0, Vec::len);
    let width = |column: usize| rows.iter().map(|row| row[column].len()).max().unwrap_or(0);
    let widths: Vec<_> = (0..columns).map(width).collect();
    let mut text = String::new();
    for row in rows {
        let (last, others) = row.split_last().map_or(("", &[][..]), |(last, rest)| (last, rest));
        for (cell, width) in others.iter().zip(&widths) {
            text.push_str(&format!("{cell:>width$}  "));
        }
        text.push_str(last);
        text.push('\n');
    }
    text
}
