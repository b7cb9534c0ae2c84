// SPDX-License-Identifier: Apache-2.0
use crate::rule_book::RuleBook;
use serde::Serialize;
use std::fs::File;
use std::io::{self, Seek, SeekFrom, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};
use tare_clock::{Rate, Snapshot};
use tare_command::{Failure, ResultExt};
use tare_hook_segment::{Action, Direction, Event, Symbol};

/// The columns of the table `events` that a line has.
pub const COLUMNS: &[&str] = &[
    "layer",
    "time_ns",
    "pid",
    "tid",
    "function",
    "direction",
    "local",
    "remote",
    "keyword",
    "offset",
    "action",
];

#[derive(Serialize)]
struct Line<'a> {
    layer: &'static str,
    time_ns: i64,
    pid: u32,
    tid: u32,
    function: &'static str,
    direction: &'static str,
    local: Option<SocketAddr>,
    remote: Option<SocketAddr>,
    keyword: &'a str,
    offset: u64,
    action: &'static str,
}

/// A file of events, a line of JSON each. It always ends with a whole line: what did not
/// fit on the disk is taken back, and counted.
pub struct EventFile {
    path: PathBuf,
    file: File,
    length: u64,
    full: bool,
    pub written: u64,
    pub unwritten: u64,
}

impl EventFile {
    pub fn create(path: &Path) -> Result<Self, Failure> {
        let file = File::create(path).map_err(|error| {
            let path = path.display();
            Failure::input(format_args!(
                "--events {path}: {error}; name a file that can be written"
            ))
        })?;
        Ok(Self { path: path.into(), file, length: 0, full: false, written: 0, unwritten: 0 })
    }

    /// Writes `events`. The first error after a success is told, as one line.
    pub fn append(
        &mut self,
        events: &[Event],
        book: &RuleBook,
        now: &Snapshot,
        rate: Rate,
    ) -> Result<(), Failure> {
        let mut text = Vec::new();
        let mut count = 0;
        for event in events {
            match line(event, book, now, rate) {
                Some(line) => {
                    serde_json::to_writer(&mut text, &line)
                        .or_failed(format_args!("--events {}", self.path.display()))?;
                    text.push(b'\n');
                    count += 1;
                }
                None => self.unwritten += 1,
            }
        }
        match self.put(&text) {
            Ok(()) => {
                self.written += count;
                self.full = false;
                Ok(())
            }
            Err(error) => {
                self.unwritten += count;
                let told = std::mem::replace(&mut self.full, true);
                if told {
                    return Ok(());
                }
                let path = self.path.display();
                Err(Failure::work(format_args!(
                    "--events {path}: {error}; events are counted as lost until it can be written again"
                )))
            }
        }
    }

    fn put(&mut self, text: &[u8]) -> io::Result<()> {
        if text.is_empty() {
            return Ok(());
        }
        self.file.write_all(text).inspect_err(|_| {
            // Neither does anything to a pipe.
            let _ = self.file.set_len(self.length);
            let _ = self.file.seek(SeekFrom::Start(self.length));
        })?;
        self.length += text.len() as u64;
        Ok(())
    }
}

/// `None` where the event names no function or keyword that there is.
fn line<'a>(event: &Event, book: &'a RuleBook, now: &Snapshot, rate: Rate) -> Option<Line<'a>> {
    Some(Line {
        layer: "hook",
        time_ns: now.realtime_at(event.ticks, rate),
        pid: event.pid,
        tid: event.tid,
        function: Symbol::ALL.get(usize::from(event.symbol))?.name(),
        direction: match event.direction {
            Direction::In => "in",
            Direction::Out => "out",
        },
        local: address(event.family, event.local, event.local_port),
        remote: address(event.family, event.remote, event.remote_port),
        keyword: book.keyword(event.generation, event.keyword)?,
        offset: event.offset,
        action: match event.action {
            Action::Trace => "trace",
            Action::Block => "block",
        },
    })
}

fn address(family: u16, bytes: [u8; 16], port: u16) -> Option<SocketAddr> {
    let address: IpAddr = match i32::from(family) {
        libc::AF_INET => Ipv4Addr::from(*bytes.first_chunk::<4>()?).into(),
        libc::AF_INET6 => Ipv6Addr::from(bytes).into(),
        _ => return None,
    };
    Some(SocketAddr::new(address, port))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::segments::Segments;
    use serde_json::Value;

    const EVENT: Event = Event {
        ticks: 1_500,
        pid: 7,
        tid: 8,
        generation: 1,
        keyword: 0,
        symbol: Symbol::recv as u16,
        direction: Direction::In,
        action: Action::Trace,
        offset: 40,
        family: libc::AF_INET as u16,
        local_port: 80,
        remote_port: 4000,
        local: [127, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
        remote: [10, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
    };

    fn book(name: &str) -> RuleBook {
        let path = std::env::temp_dir().join(format!("tare-events-{name}-{}", std::process::id()));
        std::fs::write(&path, "[[rule]]\nkeywords = [\"pass\\\"word\"]\n").unwrap();
        let book = RuleBook::open(&path, Segments::create().unwrap().control).unwrap();
        std::fs::remove_file(path).unwrap();
        book
    }

    fn clock() -> (Snapshot, Rate) {
        let first = Snapshot { ticks: 1_000, monotonic_ns: 0, realtime_ns: 5_000, width: 0 };
        let rate = Rate::between(&first, &Snapshot { ticks: 3_000, monotonic_ns: 1_000, ..first });
        (first, rate.unwrap())
    }

    #[test]
    fn a_line_has_the_declared_columns() {
        let (now, rate) = clock();
        let book = book("line");
        let value = serde_json::to_value(line(&EVENT, &book, &now, rate).unwrap()).unwrap();
        let expected = serde_json::json!({
            "layer": "hook", "time_ns": 5_250, "pid": 7, "tid": 8, "function": "recv",
            "direction": "in", "local": "127.0.0.1:80", "remote": "10.0.0.2:4000",
            "keyword": "pass\"word", "offset": 40, "action": "trace",
        });
        assert_eq!(value, expected);
        let columns = COLUMNS.iter().map(|name| (*name).to_owned());
        let keys: Vec<String> = value.as_object().unwrap().keys().cloned().collect();
        assert_eq!(keys.len(), COLUMNS.len());
        assert!(columns.into_iter().all(|name| keys.contains(&name)));
        tare_tables::EVENTS.select(COLUMNS);
    }

    #[test]
    fn addresses_are_of_both_families_or_absent() {
        let mut ip6 = [0; 16];
        ip6[15] = 1;
        let shown = |family: i32, bytes| {
            address(family as u16, bytes, 443).map(|address| address.to_string())
        };
        assert_eq!(shown(libc::AF_INET6, ip6).as_deref(), Some("[::1]:443"));
        assert_eq!(shown(libc::AF_UNIX, ip6), None);
    }

    #[test]
    fn numbers_that_name_nothing_are_counted_and_not_written() {
        let (now, rate) = clock();
        let book = book("numbers");
        let path = std::env::temp_dir().join(format!("tare-event-file-{}", std::process::id()));
        let mut file = EventFile::create(&path).unwrap();
        let bad = [
            Event { symbol: u16::MAX, ..EVENT },
            Event { keyword: 1, ..EVENT },
            Event { generation: 2, ..EVENT },
            EVENT,
        ];
        file.append(&bad, &book, &now, rate).unwrap();
        assert_eq!((file.written, file.unwritten), (1, 3));
        let text = std::fs::read_to_string(&path).unwrap();
        assert_eq!(text.lines().count(), 1);
        serde_json::from_str::<Value>(&text).unwrap();
        std::fs::remove_file(path).unwrap();
    }

    #[test]
    fn a_full_disk_is_told_once_and_counted() {
        let (now, rate) = clock();
        let book = book("full");
        let mut file = EventFile::create(Path::new("/dev/full")).unwrap();
        let error = file.append(&[EVENT], &book, &now, rate).unwrap_err().to_string();
        assert!(error.starts_with("--events /dev/full: No space left"), "{error}");
        assert!(file.append(&[EVENT, EVENT], &book, &now, rate).is_ok());
        assert_eq!((file.written, file.unwritten), (0, 3));
    }
}
