// SPDX-License-Identifier: Apache-2.0
use crate::rule_book::RuleBook;
use serde::Serialize;
use std::fs::File;
use std::io::{self, ErrorKind, Seek, SeekFrom, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use tare_clock::{Rate, Snapshot};
use tare_command::{Failure, ResultExt};
use tare_hook_segment::{Action, Direction, Event, Symbol};

/// Bytes that a pipe should hold: what the kernel allows everyone.
const PIPE: libc::c_int = 1 << 20;

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

/// A file of events, a line of JSON each. An event is a whole line or lost: what did not fit
/// on a disk is taken back, and what a pipe has taken of a line is followed by the rest. A
/// reader that stops is not waited for.
pub struct EventFile {
    path: PathBuf,
    file: File,
    /// Bytes in the file; `None` of a pipe or device, which takes nothing back.
    length: Option<u64>,
    /// The rest of a line that a pipe has taken in part.
    rest: Vec<u8>,
    told: bool,
    pub written: u64,
    unwritten: u64,
}

impl EventFile {
    /// Opens or makes the file. Opening a pipe waits for its reader, so that it should be done
    /// while Ctrl-C still ends us.
    pub fn open(path: &Path) -> Result<Self, Failure> {
        let refuse = |error| {
            let path = path.display();
            Failure::input(format_args!(
                "--events {path}: {error}; name a file that can be written"
            ))
        };
        let options = File::options().write(true).create(true).truncate(false).to_owned();
        let file = options.open(path).map_err(refuse)?;
        let length = file.metadata().map_err(refuse)?.is_file().then_some(0);
        if length.is_none() {
            // What we opened is ours: others that have the same pipe still wait. A larger pipe
            // helps a reader that is only slow; a smaller one will do.
            // SAFETY: the descriptor is open, and no memory is touched.
            unsafe {
                libc::fcntl(file.as_raw_fd(), libc::F_SETFL, libc::O_NONBLOCK);
                libc::fcntl(file.as_raw_fd(), libc::F_SETPIPE_SZ, PIPE);
            }
        }
        Ok(Self {
            path: path.into(),
            file,
            length,
            rest: Vec::new(),
            told: false,
            written: 0,
            unwritten: 0,
        })
    }

    /// Empties the file of what an earlier run has left.
    pub fn empty(&self) -> Result<(), Failure> {
        let done = self.length.map_or(Ok(()), |length| self.file.set_len(length));
        done.or_failed(format_args!("--events {}", self.path.display()))
    }

    /// Writes `events`. The first error is told, as one line.
    pub fn append(
        &mut self,
        events: &[Event],
        book: &RuleBook,
        now: &Snapshot,
        rate: Rate,
    ) -> Result<(), Failure> {
        let mut text = std::mem::take(&mut self.rest);
        let torn = !text.is_empty();
        for event in events {
            match line(event, book, now, rate) {
                Some(line) => {
                    serde_json::to_writer(&mut text, &line)
                        .or_failed(format_args!("--events {}", self.path.display()))?;
                    text.push(b'\n');
                }
                None => self.unwritten += 1,
            }
        }
        let Err(error) = self.put(&text, torn) else { return Ok(()) };
        if std::mem::replace(&mut self.told, true) {
            return Ok(());
        }
        let path = self.path.display();
        let reason = match error.kind() {
            ErrorKind::WouldBlock => "its reader does not keep up".to_owned(),
            _ => error.to_string(),
        };
        Err(Failure::work(format_args!(
            "--events {path}: {reason}; events are counted as lost until it can be written again"
        )))
    }

    /// Events that are not in the file, and never will be where this is the end.
    pub fn lost(&self) -> u64 {
        self.unwritten + u64::from(!self.rest.is_empty())
    }

    /// Writes as many lines of `text` as there is room for, and counts them and the others.
    /// The first may be `torn`, the rest of one.
    fn put(&mut self, text: &[u8], torn: bool) -> io::Result<()> {
        let (taken, done) = write(&mut self.file, text);
        let (before, after) = text.split_at(taken);
        let kept = match &mut self.length {
            Some(length) => {
                let kept = before.iter().rposition(is_end).map_or(0, |last| last + 1);
                *length += kept as u64;
                if done.is_err() {
                    self.file.set_len(*length)?;
                    self.file.seek(SeekFrom::Start(*length))?;
                }
                kept
            }
            None => {
                let is_whole = before.last().map_or(!torn, is_end);
                let rest = after.iter().position(is_end).filter(|_| !is_whole);
                self.rest = after[..rest.map_or(0, |last| last + 1)].to_vec();
                taken + self.rest.len()
            }
        };
        let lines = |text: &[u8]| text.iter().filter(|byte| is_end(byte)).count() as u64;
        self.written += lines(&text[..taken.min(kept)]);
        self.unwritten += lines(&text[kept..]);
        done
    }
}

fn is_end(byte: &u8) -> bool {
    *byte == b'\n'
}

/// Writes until something fails; how much was taken until then.
fn write(file: &mut File, text: &[u8]) -> (usize, io::Result<()>) {
    let mut taken = 0;
    while taken < text.len() {
        match file.write(&text[taken..]) {
            Ok(0) => return (taken, Err(ErrorKind::WriteZero.into())),
            Ok(length) => taken += length,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return (taken, Err(error)),
        }
    }
    (taken, Ok(()))
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
    use std::io::Read;

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
        let mut file = EventFile::open(&path).unwrap();
        let bad = [
            Event { symbol: u16::MAX, ..EVENT },
            Event { keyword: 1, ..EVENT },
            Event { generation: 2, ..EVENT },
            EVENT,
        ];
        file.append(&bad, &book, &now, rate).unwrap();
        assert_eq!((file.written, file.lost()), (1, 3));
        let text = std::fs::read_to_string(&path).unwrap();
        assert_eq!(text.lines().count(), 1);
        serde_json::from_str::<Value>(&text).unwrap();
        std::fs::remove_file(path).unwrap();
    }

    #[test]
    fn a_full_disk_is_told_once_and_counted() {
        let (now, rate) = clock();
        let book = book("full");
        let mut file = EventFile::open(Path::new("/dev/full")).unwrap();
        let error = file.append(&[EVENT], &book, &now, rate).unwrap_err().to_string();
        assert!(error.starts_with("--events /dev/full: No space left"), "{error}");
        assert!(file.append(&[EVENT, EVENT], &book, &now, rate).is_ok());
        assert_eq!((file.written, file.lost()), (0, 3));
    }

    #[test]
    fn a_pipe_that_nobody_reads_is_not_waited_for_and_gets_whole_lines() {
        let (now, rate) = clock();
        let book = book("pipe");
        let (mut reader, writer) = std::io::pipe().unwrap();
        let path = format!("/proc/self/fd/{}", writer.as_raw_fd());
        let mut file = EventFile::open(Path::new(&path)).unwrap();
        drop(writer);
        // SAFETY: the descriptor is open, and no memory is touched.
        unsafe { libc::fcntl(reader.as_raw_fd(), libc::F_SETPIPE_SZ, 4096) };
        let mut text = vec![0; 4096];
        let error = file.append(&[EVENT; 100], &book, &now, rate).unwrap_err().to_string();
        assert!(error.contains(": its reader does not keep up; events are counted"), "{error}");
        assert!(file.append(&[EVENT; 10], &book, &now, rate).is_ok(), "told once");
        assert_eq!(file.written + file.lost(), 110);
        reader.read_exact(&mut text).unwrap();
        file.append(&[EVENT; 2], &book, &now, rate).unwrap();
        let (written, lost) = (file.written, file.lost());
        assert_eq!(written + lost, 112);
        drop(file);
        reader.read_to_end(&mut text).unwrap();
        let text = String::from_utf8(text).unwrap();
        assert_eq!(text.lines().count() as u64, written);
        text.lines().for_each(|line| drop(serde_json::from_str::<Value>(line).unwrap()));
    }
}
