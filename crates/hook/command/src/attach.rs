// SPDX-License-Identifier: Apache-2.0
//! Programs that run under the hook already, whose tare-hook has died.

use crate::segments::Segments;
use crate::target::Followed;
use std::ffi::CStr;
use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::os::fd::{AsRawFd, IntoRawFd, OwnedFd, RawFd};
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::time::{Duration, Instant};
use tare_command::processes::{self, is_readable};
use tare_command::segments::{self, memory_at};
use tare_command::{Failure, SegmentError, Signal};
use tare_hook_segment::{Control, Shared};
use tare_shm::peer::Peers;
use tare_shm::{Access, Errno, Refusal};

/// A program that is just being executed has no mapping until its constructors run.
const PATIENCE: Duration = Duration::from_millis(200);

/// All processes that have the segments, one of which is waited for at a time.
pub struct Programs {
    process: OwnedFd,
    shared: Inode,
    /// Since when none is known.
    none_since: Option<Instant>,
    stopped: bool,
}

/// Takes over the hook of process `pid`.
pub fn attach(pid: u32) -> Result<(Segments, Programs), Failure> {
    let refuse = |reason: &str| Failure::input(format_args!("--attach {pid}: {reason}"));
    let fails = |error: io::Error| match error.raw_os_error() {
        Some(libc::ESRCH | libc::ENOENT) => {
            refuse("no such process; give a process that tare hook started")
        }
        Some(libc::EINVAL) => refuse("this is a thread; give its process"),
        Some(libc::ENOSYS) => refuse(
            "the kernel lacks pidfd_open; this needs Linux 5.3 or \
                                      later",
        ),
        Some(libc::EACCES | libc::EPERM) => {
            refuse("permission denied; attach as the user that ran tare hook")
        }
        _ => refuse(&error.to_string()),
    };
    let process = processes::pidfd(pid).map_err(fails)?;
    let open = |name| {
        let Some(path) = path(pid, name).map_err(fails)? else {
            return Err(refuse("it has no hook; give a process that tare hook started"));
        };
        let peers = Peers::get(None);
        let opened = segments::open(&path, Access::ReadWrite, |user| peers.admit(user));
        opened.map_err(|refusal| match refusal {
            Refusal::Failed(Errno(number)) => fails(io::Error::from_raw_os_error(number)),
            refusal => {
                let error = SegmentError::Refused(refusal);
                refuse(&format!("its hook cannot be used: {error}"))
            }
        })
    };
    let (control, shared) = (open(Control::NAME)?, File::from(open(Shared::NAME)?));
    let status = shared.metadata().map_err(fails)?;
    let opened = Segments::open(control.into_raw_fd(), shared.into_raw_fd());
    let segments = opened.map_err(|error| match error {
        SegmentError::Served(0) => refuse("another tare hook serves it; stop that process first"),
        SegmentError::Served(other) => refuse(&format!(
            "tare hook (process {other}) serves it; stop \
                                                    that process first"
        )),
        SegmentError::Refused(Refusal::OtherVersion(_)) => {
            refuse("its hook comes from another build; use the version of tare that started it")
        }
        SegmentError::Refused(_) => {
            refuse(&format!("its hook cannot be used: {error}; start the program again"))
        }
    })?;
    // The number may have gone to another process before we looked.
    if is_readable(&process) {
        return Err(refuse("it has exited"));
    }
    let programs = Programs {
        process,
        shared: (status.dev(), status.ino()),
        none_since: None,
        stopped: false,
    };
    Ok((segments, programs))
}

impl Programs {
    /// Whether it was not their end that ended the session.
    pub fn go_on(&self) -> bool {
        self.stopped
    }

    /// Some process that has the segments.
    fn next(&self) -> Option<OwnedFd> {
        let own = std::process::id();
        processes::all().filter(|pid| *pid != own).find_map(|pid| {
            let process = processes::pidfd(pid).ok()?;
            Some(process).filter(|process| self.has_memory(pid) && !is_readable(process))
        })
    }

    /// Whether a process has it mapped or, if it is another user's, open.
    fn has_memory(&self, pid: u32) -> bool {
        if !processes::is_own(pid) {
            let is_it = |path: PathBuf| memory_at(&path) == Some(self.shared);
            return segments::paths(pid, Shared::NAME).is_ok_and(|mut paths| paths.any(is_it));
        }
        let is_it = |mapping: &Mapping<'_>| mapping.inode == self.shared;
        maps(pid).is_ok_and(|maps| Mapping::find(&maps, is_it).is_some())
    }
}

impl Followed for Programs {
    fn fd(&self) -> RawFd {
        // One that has ended stays readable: the next look comes with time.
        if self.none_since.is_some() { -1 } else { self.process.as_raw_fd() }
    }

    /// They are not ours to end.
    fn signal(&mut self, _: Signal) {
        self.stopped = true;
    }

    fn has_ended(&mut self) -> Result<bool, Failure> {
        if self.stopped {
            return Ok(true);
        }
        if !is_readable(&self.process) {
            return Ok(false);
        }
        if let Some(process) = self.next() {
            self.process = process;
            self.none_since = None;
            return Ok(false);
        }
        Ok(self.none_since.get_or_insert_with(Instant::now).elapsed() > PATIENCE)
    }
}

/// A way to the segment that a process has mapped or, if it is another user's, open under a name.
fn path(pid: u32, name: &CStr) -> io::Result<Option<PathBuf>> {
    if !processes::is_own(pid) {
        let reason = "it has no hook, or has closed the hook's descriptors; give its parent \
                      process, or attach as its user";
        let found = segments::paths(pid, name)?.find(|path| memory_at(path).is_some());
        return found.map(Some).ok_or_else(|| io::Error::other(reason));
    }
    let maps = maps(pid)?;
    let name = segments::mapping(name);
    let mapping = Mapping::find(&maps, |mapping| mapping.name == name);
    mapping.map(|mapping| mapping.path(pid)).transpose()
}

/// What a process has mapped.
fn maps(pid: u32) -> io::Result<String> {
    let mut text = Vec::new();
    processes::maps(pid)?.read_to_end(&mut text)?;
    Ok(String::from_utf8_lossy(&text).into_owned())
}

/// Device and number.
type Inode = (u64, u64);

struct Mapping<'m> {
    range: &'m str,
    inode: Inode,
    name: &'m str,
}

impl<'m> Mapping<'m> {
    fn find(maps: &'m str, is_it: impl Fn(&Self) -> bool) -> Option<Self> {
        maps.lines().filter_map(Self::parse).find(is_it)
    }

    fn parse(line: &'m str) -> Option<Self> {
        let mut words = line.split_ascii_whitespace();
        let (range, device) = (words.next()?, words.nth(2)?);
        let (major, minor) = device.split_once(':')?;
        let hex = |text| u32::from_str_radix(text, 16).ok();
        let inode = (libc::makedev(hex(major)?, hex(minor)?), words.next()?.parse().ok()?);
        Some(Self { range, inode, name: words.next().unwrap_or("") })
    }

    /// A way to the file: by a descriptor that the process has, else by the mapping itself,
    /// which takes more rights.
    fn path(&self, pid: u32) -> io::Result<PathBuf> {
        let is_it = |path: &PathBuf| memory_at(path) == Some(self.inode);
        if let Some(path) = processes::descriptors(pid)?.find(is_it) {
            return Ok(path);
        }
        let path = PathBuf::from(format!("/proc/{pid}/map_files/{}", self.range));
        match path.metadata() {
            Ok(_) => Ok(path),
            Err(error) if error.kind() == ErrorKind::PermissionDenied => {
                let reason = "it has closed the hook's descriptors; attach to its parent process, \
                              or attach as root";
                Err(io::Error::other(reason))
            }
            Err(error) => Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn a_mapping_is_told_by_its_file() {
        let maps = "55d0-55d1 r-xp 00000000 fe:00 1234 /usr/bin/x y\n\
                    7f00-7f01 rw-p 00000000 00:00 0\n\
                    rubbish\n\
                    7fe0-7ff0 rw-s 00000000 00:1f 77 /memfd:tare-hook-shared (deleted)\n";
        let named = |name| Mapping::find(maps, |mapping| mapping.name == segments::mapping(name));
        let found = named(Shared::NAME).unwrap();
        assert_eq!((found.range, found.inode), ("7fe0-7ff0", (libc::makedev(0, 0x1f), 77)));
        assert!(named(Control::NAME).is_none());
    }

    #[test]
    fn the_own_mappings_are_found_under_their_descriptors() {
        let (_, handover) = Segments::create().unwrap();
        let pid = std::process::id();
        let maps = maps(pid).unwrap();
        let wanted = fs::metadata(format!("/proc/{pid}/fd/{}", handover.shared)).unwrap().ino();
        let found = Mapping::find(&maps, |mapping| mapping.inode.1 == wanted).unwrap();
        assert!(found.name == segments::mapping(Shared::NAME));
        assert_eq!(found.path(pid).unwrap().metadata().unwrap().ino(), wanted);
    }

    #[test]
    fn a_number_that_is_nobodys_is_refused() {
        let error = attach(i32::MAX as u32).err().unwrap().to_string();
        assert!(
            error.ends_with("no such process; give a process that tare hook started"),
            "{error}"
        );
    }
}
