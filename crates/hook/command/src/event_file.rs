// SPDX-License-Identifier: Apache-2.0
use crate::event_line;
use crate::event_times::EventTimes;
use crate::rules_file::RuleBook;
use std::fs::File;
use std::io::{self, ErrorKind, Seek, SeekFrom, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use tare_clock::{Rate, Snapshot};
use tare_command::{Failure, ResultExt, links};
use tare_hook_segment::Event;

/// Bytes that a pipe should hold: what the kernel allows everyone.
const PIPE: libc::c_int = 1 << 20;
/// Events whose lines are written at once.
const BATCH: usize = 4096;

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
    /// Lines on their way.
    text: Vec<u8>,
    told: bool,
    pub written: u64,
    unwritten: u64,
    times: EventTimes,
}

impl EventFile {
    /// Opens or makes the file. Opening a pipe waits for its reader, so that it should be done
    /// while Ctrl-C still ends us.
    pub fn open(path: &Path) -> Result<Self, Failure> {
        Self::open_to(path, false)
    }

    /// As `open`, for [`EventFile::go_on`], which looks at what the file has.
    pub fn open_again(path: &Path) -> Result<Self, Failure> {
        // A pipe that we could read would never be without a reader.
        Self::open_to(path, path.metadata().is_ok_and(|status| status.is_file()))
    }

    fn open_to(path: &Path, read: bool) -> Result<Self, Failure> {
        let refuse = |error| {
            let (path, and_read) = (path.display(), if read { " and read" } else { "" });
            Failure::input(format_args!("--events {path}: {error}; give a writable file{and_read}"))
        };
        let file = links::open(path, File::options().read(read).write(true)).map_err(refuse)?;
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
            text: Vec::new(),
            told: false,
            written: 0,
            unwritten: 0,
            times: EventTimes::new(),
        })
    }

    /// Empties the file of what an earlier run has left.
    pub fn empty(&self) -> Result<(), Failure> {
        // ext4 writes a file that was cut to nothing to the disk when it is closed, even one that
        // had nothing.
        let has_any = || Ok(self.length.is_some() && self.file.metadata()?.len() > 0);
        let done = has_any().and_then(|any| if any { self.file.set_len(0) } else { Ok(()) });
        done.or_failed(format_args!("--events {}", self.path.display()))
    }

    /// Goes on behind the last whole line that the file has.
    pub fn go_on(&mut self) -> Result<(), Failure> {
        if self.length.is_some() {
            let length = whole(&self.file).and_then(|length| {
                self.file.set_len(length)?;
                self.file.seek(SeekFrom::Start(length))
            });
            let path = self.path.display();
            self.length = Some(length.or_failed(format_args!("--events {path}"))?);
        }
        Ok(())
    }

    /// Writes `events`, and before them the rest of a torn line: to be called where there are
    /// none, too. The first error is told, as one line.
    pub fn append(
        &mut self,
        events: &[Event],
        book: &RuleBook,
        now: &Snapshot,
        rate: Rate,
    ) -> Result<(), Failure> {
        if events.is_empty() && !self.rest.is_empty() {
            return self.append_batch(events, book);
        }
        self.times.begin(now, rate);
        let mut done = Ok(());
        for batch in events.chunks(BATCH) {
            // Where one finds no room the next is tried all the same, and counted.
            done = done.and(self.append_batch(batch, book));
        }
        done
    }

    fn append_batch(&mut self, events: &[Event], book: &RuleBook) -> Result<(), Failure> {
        let mut text = std::mem::take(&mut self.text);
        text.clear();
        text.append(&mut self.rest);
        let torn = !text.is_empty();
        for event in events {
            let time = self.times.at(event.ticks);
            let keyword = book.keyword(event.generation, event.keyword);
            let is_line =
                keyword.is_some_and(|word| event_line::append(&mut text, event, word, time));
            self.unwritten += u64::from(!is_line);
        }
        let done = self.put(&text, torn);
        self.text = text;
        let Err(error) = done else { return Ok(()) };
        if std::mem::replace(&mut self.told, true) {
            return Ok(());
        }
        let path = self.path.display();
        let reason = match error.kind() {
            ErrorKind::WouldBlock => "its reader is too slow".to_owned(),
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

/// Bytes of a file up to the end of its last whole line.
fn whole(file: &File) -> io::Result<u64> {
    const STEP: u64 = 4096;
    let mut end = file.metadata()?.len();
    let mut bytes = [0; STEP as usize];
    while end > 0 {
        let start = (end - 1) / STEP * STEP;
        let part = &mut bytes[..(end - start) as usize];
        file.read_exact_at(part, start)?;
        if let Some(last) = part.iter().rposition(is_end) {
            return Ok(start + last as u64 + 1);
        }
        end = start;
    }
    Ok(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event_line::tests::EVENT;
    use crate::rules_file::FirstRules;
    use crate::segments::Segments;
    use serde_json::Value;
    use std::io::Read;

    fn book(name: &str) -> RuleBook {
        let path = std::env::temp_dir().join(format!("tare-events-{name}-{}", std::process::id()));
        std::fs::write(&path, "[[rule]]\nkeywords = [\"pass\\\"word\"]\n").unwrap();
        let book =
            RuleBook::open(FirstRules::read(&path).unwrap(), Segments::create().unwrap().0.control);
        std::fs::remove_file(path).unwrap();
        book
    }

    fn clock() -> (Snapshot, Rate) {
        let first = Snapshot { ticks: 1_000, monotonic_ns: 0, realtime_ns: 5_000, width: 0 };
        let rate = Rate::between(&first, &Snapshot { ticks: 3_000, monotonic_ns: 1_000, ..first });
        (first, rate.unwrap())
    }

    #[test]
    fn a_session_goes_on_behind_the_last_whole_line() {
        let (now, rate) = clock();
        let book = book("on");
        let path = std::env::temp_dir().join(format!("tare-event-on-{}", std::process::id()));
        let long = "x".repeat(9_000);
        for (left, kept) in [
            (format!("{{}}\n{long}"), "{}\n".to_owned()),
            (format!("{long}\n"), format!("{long}\n")),
            (long.clone(), String::new()),
            (String::new(), String::new()),
        ] {
            std::fs::write(&path, left).unwrap();
            let mut file = EventFile::open_again(&path).unwrap();
            file.go_on().unwrap();
            file.append(&[EVENT], &book, &now, rate).unwrap();
            let text = std::fs::read_to_string(&path).unwrap();
            let line = text.strip_prefix(&kept).unwrap();
            serde_json::from_str::<Value>(line).unwrap();
        }
        // The one that was opened is looked at, whatever bears its name by now.
        let mut file = EventFile::open_again(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        file.go_on().unwrap();
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
        assert!(error.contains(": its reader is too slow; events are counted"), "{error}");
        assert!(file.append(&[EVENT; 10], &book, &now, rate).is_ok(), "told once");
        assert_eq!(file.written + file.lost(), 110);
        assert!(!file.rest.is_empty());
        reader.read_exact(&mut text).unwrap();
        file.append(&[], &book, &now, rate).unwrap();
        assert!(file.rest.is_empty(), "its end waits for no other event");
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
