// SPDX-License-Identifier: Apache-2.0
use crate::procfs;
use std::fs::{File, Metadata, OpenOptions};
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use tare_clock::Snapshot;
use tare_command::{Failure, ResultExt, links, say};
use tare_log_file::{Boot, Clock, Codec, Header, Kind, MAGIC, block};
use tare_log_segment::Identity;
use tare_log_segment::block::LARGEST;
use tare_shm::service;
use tare_shm::syscall::{self, Errno};

/// Whether a file that is open for writing begins as one of tare log's.
fn is_log(file: &File) -> bool {
    let mut begin = [0; MAGIC.len()];
    let same = File::open(format!("/proc/self/fd/{}", file.as_raw_fd()));
    same.and_then(|mut file| file.read_exact(&mut begin)).is_ok() && begin == MAGIC
}

fn identity(status: &Metadata) -> Identity {
    Identity { device: status.dev(), inode: status.ino() }
}

/// The file, or a pipe; one that nobody reads would keep its writer.
fn open(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.append(true).custom_flags(libc::O_NONBLOCK);
    links::open(path, &options).map_err(|error| match error.raw_os_error() {
        Some(libc::ENXIO) => {
            io::Error::other("no process reads from this FIFO; start its reader first")
        }
        _ => error,
    })
}

/// Each writing goes to the end, and waits for room in a pipe.
fn append(file: &File) -> io::Result<()> {
    syscall::fcntl(file.as_raw_fd(), libc::F_SETFL, libc::O_APPEND as usize)
        .map_err(|Errno(number)| io::Error::from_raw_os_error(number))?;
    Ok(())
}

/// The file that blocks are added to. A block is there whole or not at all, unless this
/// process dies in the middle, or programs write into the file as well; then the reader leaves
/// out what there is.
pub struct LogFile {
    file: File,
    path: PathBuf,
    /// Where it was at first, until it is reported that it is no longer there.
    place: Option<PathBuf>,
    /// Nothing is written any more, only counted.
    is_given_up: bool,
    /// `None` of a pipe and the like.
    identity: Option<Identity>,
    /// Programs may write into it: what was there already, a collector before may have lent.
    is_lent: bool,
    /// As far as this process has written it.
    length: u64,
    next_process: u32,
    boot: Boot,
    /// How events are compressed.
    pub codec: Codec,
}

impl LogFile {
    /// What the file has is kept.
    pub fn open(option: &str, path: &Path, codec: Codec) -> Result<Self, Failure> {
        let what = format!("{option} {}", path.display());
        Self::of(open(path).or_input(&what)?, &what, path, codec)
    }

    /// The same with a file that was just made for `path`; `what` is for errors.
    pub fn of(file: File, what: &str, path: &Path, codec: Codec) -> Result<Self, Failure> {
        append(&file).or_failed(what)?;
        let status = file.metadata().or_failed(what)?;
        let length = status.len();
        if status.is_file() && length > 0 && !is_log(&file) {
            return Err(Failure::input(format_args!(
                "{what}: it does not contain events; give another file"
            )));
        }
        // Numbers of processes only have to differ within a file, whoever wrote what it has.
        let next_process = Snapshot::take().realtime_ns as u32;
        let identity = status.is_file().then(|| identity(&status));
        let place = identity.and_then(|_| links::place(&file));
        let boot = procfs::boot();
        Ok(Self {
            file,
            path: path.to_owned(),
            place,
            is_given_up: false,
            identity,
            is_lent: length > 0,
            length,
            next_process,
            boot,
            codec,
        })
    }

    /// The file's name, for errors.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What programs know the file by; `None` where they cannot write into it.
    pub fn identity(&self) -> Option<Identity> {
        self.identity
    }

    /// Whether programs may write into it.
    pub fn is_lent(&self) -> bool {
        self.is_lent
    }

    /// The file, for a program that writes into it from now on.
    pub fn lend(&mut self) -> BorrowedFd<'_> {
        self.is_lent = true;
        self.file.as_fd()
    }

    /// Refuses a file that another collector writes to: at a full disk each would cut off what
    /// the other has added. It is this one's until it ends, or has the file opened and closed
    /// once more.
    pub fn claim(&self) -> Result<(), String> {
        let is_file = self.file.metadata().is_ok_and(|status| status.is_file());
        // Not every file system has locks.
        match service::serve(self.file.as_raw_fd()) {
            Ok(Some(other)) if is_file => {
                Err(format!("collector {other} writes to it; give another file"))
            }
            _ => Ok(()),
        }
    }

    pub fn next_process(&mut self) -> u32 {
        self.next_process = self.next_process.wrapping_add(1);
        self.next_process
    }

    /// What is added from now on is in no file.
    pub fn give_up(&mut self) {
        self.is_given_up = true;
    }

    /// Adds a block.
    pub fn block(&mut self, header: Header, content: &[u8]) -> io::Result<()> {
        if self.is_given_up {
            return Ok(());
        }
        // Readers refuse what is larger.
        if header.raw.max(content.len() as u32) as usize > LARGEST {
            return Err(io::Error::other("a block is too large"));
        }
        let block = block(header, content)?;
        // Another may have added something since (`tare log sync --file`).
        let end = self.file.metadata()?.len();
        let written = match self.identity {
            Some(_) => self.write_at_once(&block),
            None => self.file.write_all(&block),
        };
        if written.is_ok() {
            self.length += block.len() as u64;
        } else if self.identity.is_some() && !self.is_lent {
            // Where programs write, too, what follows is theirs.
            let _ = self.file.set_len(end);
        }
        written
    }

    /// In one piece, between the blocks of others.
    fn write_at_once(&mut self, block: &[u8]) -> io::Result<()> {
        loop {
            match self.file.write(block) {
                Ok(length) if length == block.len() => return Ok(()),
                // What is in the way is said of the rest.
                Ok(length) => match self.file.write(&block[length..]) {
                    Ok(_) => return Err(io::Error::from_raw_os_error(libc::ENOSPC)),
                    Err(error) => return Err(error),
                },
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// What has no columns.
    pub fn metadata(&mut self, kind: Kind, process: u32, content: &[u8]) -> io::Result<()> {
        self.block(Header { raw: content.len() as u32, ..Header::of(kind, process) }, content)
    }

    /// Says once if the file is no longer where it was: it was deleted, renamed or replaced.
    pub fn check_path(&mut self) {
        if self.place.is_some() && links::place(&self.file) != self.place {
            self.place = None;
            say(format_args!(
                "--out {}: the file was deleted or renamed; events are still written to it. \
                 Restart the collector for a new file",
                self.path.display()
            ));
        }
    }

    /// The clocks now.
    pub fn clock(&mut self) -> io::Result<()> {
        let now = Snapshot::take();
        self.reading(Clock {
            ticks: now.ticks,
            monotonic_ns: now.monotonic_ns,
            realtime_ns: now.realtime_ns,
            width: now.width,
            boot: self.boot,
        })
    }

    pub fn reading(&mut self, clock: Clock) -> io::Result<()> {
        self.metadata(Kind::Clock, 0, &clock.bytes())
    }

    /// How long the file is.
    pub fn bytes(&self) -> u64 {
        match self.file.metadata() {
            Ok(status) if status.is_file() => status.len(),
            _ => self.length,
        }
    }
}
