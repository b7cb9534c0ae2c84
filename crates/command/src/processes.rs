// SPDX-License-Identifier: Apache-2.0
//! Processes of this machine and the segments that they have open: where a part of Tare finds
//! programs whose collector has ended.

use std::ffi::CString;
use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::iter::Peekable;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use tare_shm::{Access, Errno, Refusal, found, peer};

/// The PIDs of all processes that are seen here.
pub fn all() -> impl Iterator<Item = u32> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// The paths of the descriptors of process `pid`, each a link to what it has open.
pub fn descriptors(pid: u32) -> io::Result<impl Iterator<Item = PathBuf>> {
    let mut first = paths(format!("/proc/{pid}/fd").as_ref())?;
    if first.peek().is_some() {
        return Ok(first);
    }
    // The first thread may have exited; others have the descriptors.
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task"))?.flatten();
    let mut others = tasks.filter_map(|task| paths(&task.path().join("fd")).ok());
    Ok(others.find_map(|mut paths| paths.peek().is_some().then_some(paths)).unwrap_or(first))
}

fn paths(folder: &Path) -> io::Result<Peekable<impl Iterator<Item = PathBuf> + use<>>> {
    let entries = std::fs::read_dir(folder)?;
    Ok(entries.filter_map(|entry| Some(entry.ok()?.path())).peekable())
}

/// What process `pid` has mapped, in lines of proc_pid_maps(5).
pub fn maps(pid: u32) -> io::Result<impl BufRead> {
    let open = |folder: &Path| {
        let mut maps = BufReader::new(File::open(folder.join("maps"))?);
        let is_empty = maps.fill_buf()?.is_empty();
        Ok::<_, io::Error>((maps, is_empty))
    };
    let (first, is_empty) = open(format!("/proc/{pid}").as_ref())?;
    if !is_empty {
        return Ok(first);
    }
    // The first thread may have exited; others have the memory.
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task"))?.flatten();
    let mut others = tasks.filter_map(|task| open(&task.path()).ok());
    Ok(others.find_map(|(maps, is_empty)| (!is_empty).then_some(maps)).unwrap_or(first))
}

/// Opens a segment of another process by such a path; see [`found::open`].
pub fn open_segment(
    path: &Path,
    access: Access,
    is_owner: impl FnOnce(u32) -> bool,
) -> Result<OwnedFd, Refusal> {
    let path = CString::new(path.as_os_str().as_bytes()).map_err(|_| Refusal::NotOurs)?;
    found::open(&path, access, is_owner).map(owned)
}

/// A pidfd: becomes readable when process `pid` exits.
pub fn pidfd(pid: u32) -> io::Result<OwnedFd> {
    peer::pidfd(pid).map(owned).map_err(|Errno(number)| io::Error::from_raw_os_error(number))
}

/// A pidfd of the process that connected, whose PID may be another's by now.
pub fn peer(connection: &UnixStream) -> io::Result<OwnedFd> {
    let peer = peer::process(connection.as_raw_fd());
    peer.map(owned).map_err(|Errno(number)| io::Error::from_raw_os_error(number))
}

fn owned(fd: RawFd) -> OwnedFd {
    // SAFETY: the functions above pass a new descriptor, which nothing else owns.
    unsafe { OwnedFd::from_raw_fd(fd) }
}

/// Whether the other end of a connection is closed.
pub fn is_hung_up(fd: &impl AsRawFd) -> bool {
    let mut poll = libc::pollfd { fd: fd.as_raw_fd(), events: 0, revents: 0 };
    // SAFETY: one entry.
    unsafe { libc::poll(&mut poll, 1, 0) > 0 && poll.revents & libc::POLLHUP != 0 }
}

/// Whether a descriptor can be read, is at its end or, of a pidfd, its process has exited.
pub fn is_readable(fd: &impl AsRawFd) -> bool {
    let mut poll = libc::pollfd { fd: fd.as_raw_fd(), events: libc::POLLIN, revents: 0 };
    // SAFETY: one entry.
    unsafe { libc::poll(&mut poll, 1, 0) > 0 && poll.revents != 0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, id};
    use tare_shm::header::kind::HOOK;
    use tare_shm::{Segment, syscall};

    #[test]
    fn segment_of_a_process_is_found_among_its_descriptors() {
        let (fd, segment) = Segment::create(c"processes", HOOK, 1, 4096).unwrap();
        assert!(all().any(|pid| pid == id()));
        let is_it = |path: &PathBuf| {
            std::fs::read_link(path).is_ok_and(|link| link.ends_with("memfd:processes (deleted)"))
        };
        let path = descriptors(id()).unwrap().find(is_it).unwrap();
        assert_eq!(path, Path::new(&format!("/proc/{}/fd/{fd}", id())));
        let own = syscall::geteuid();
        let found = open_segment(&path, Access::ReadOnly, |user| user == own).unwrap();
        let found = Segment::open(found.as_raw_fd(), HOOK, 1, Access::ReadOnly).unwrap();
        assert_eq!(found.header(), segment.header());
        assert!(descriptors(u32::MAX).is_err());
    }

    #[test]
    fn pidfd_is_readable_once_its_process_has_exited() {
        let mut child = Command::new("sleep").arg("30").spawn().unwrap();
        let process = pidfd(child.id()).unwrap();
        assert!(!is_readable(&process));
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(is_readable(&process));
        assert_eq!(pidfd(i32::MAX as u32).unwrap_err().raw_os_error(), Some(libc::ESRCH));
    }
}
