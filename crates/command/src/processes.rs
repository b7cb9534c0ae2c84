// SPDX-License-Identifier: Apache-2.0
//! Processes of this machine, and what the kernel says of them.
//!
//! The user of a process can hold everybody who reads its memory or asks what it has mapped: they
//! wait for a lock, which is kept while a file of FUSE is unmapped whose server does not answer. So
//! both are only asked of processes of this user. `comm`, `stat`, `status`, `exe` and `fd` need no
//! such lock.

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, ErrorKind, Read};
use std::iter::Peekable;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::ptr;
use tare_shm::{Errno, peer};

/// Bytes of a command line that are read: a program can make its own any length.
const LONGEST_COMMAND: u64 = 1 << 16;

/// The PIDs of all processes that are seen here.
pub fn all() -> impl Iterator<Item = u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// The paths of the descriptors of process `pid`, each a link to what it has open.
pub fn descriptors(pid: u32) -> io::Result<impl Iterator<Item = PathBuf>> {
    let mut first = paths(format!("/proc/{pid}/fd").as_ref())?;
    if first.peek().is_some() {
        return Ok(first);
    }
    // The first thread may have exited; others have the descriptors.
    let tasks = fs::read_dir(format!("/proc/{pid}/task"))?.flatten();
    let mut others = tasks.filter_map(|task| paths(&task.path().join("fd")).ok());
    Ok(others.find_map(|mut paths| paths.peek().is_some().then_some(paths)).unwrap_or(first))
}

fn paths(folder: &Path) -> io::Result<Peekable<impl Iterator<Item = PathBuf> + use<>>> {
    let entries = fs::read_dir(folder)?;
    Ok(entries.filter_map(|entry| Some(entry.ok()?.path())).peekable())
}

/// The folder of a process, also if its PID is given to another one meanwhile.
struct Folder(File);

impl Folder {
    fn of(pid: u32) -> io::Result<Self> {
        File::open(format!("/proc/{pid}")).map(Self)
    }

    fn path(&self) -> PathBuf {
        format!("/proc/self/fd/{}", self.0.as_raw_fd()).into()
    }

    fn users(&self) -> Vec<u32> {
        let status = fs::read(self.path().join("status")).unwrap_or_default();
        let status = String::from_utf8_lossy(&status);
        let numbers = status.lines().find_map(|line| line.strip_prefix("Uid:"));
        let numbers = numbers.unwrap_or_default().split_whitespace();
        numbers.filter_map(|number| number.parse().ok()).collect()
    }

    /// Whether no other user can hold who reads its memory.
    fn is_own(&self) -> bool {
        let users = self.users();
        !users.is_empty() && users.into_iter().all(peer::is_own)
    }
}

/// The users that process `pid` is and acts as, and may become again.
pub fn users(pid: u32) -> Vec<u32> {
    Folder::of(pid).map_or(Vec::new(), |folder| folder.users())
}

/// Whether process `pid` is this user's in every way.
pub fn is_own(pid: u32) -> bool {
    Folder::of(pid).is_ok_and(|folder| folder.is_own())
}

/// The words that process `pid` was started with. Of a process of another user they are its program
/// and `...`; if that may not be seen, its name in brackets.
pub fn command(pid: u32) -> io::Result<Vec<Vec<u8>>> {
    let folder = Folder::of(pid)?;
    let path = folder.path();
    let mut words = Vec::new();
    if folder.is_own() {
        File::open(path.join("cmdline"))?.take(LONGEST_COMMAND).read_to_end(&mut words)?;
    } else if let Ok(program) = fs::read_link(path.join("exe")) {
        words = [program.as_os_str().as_bytes(), b"..."].join(&0);
    }
    words.truncate(words.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1));
    if words.is_empty() {
        words = [b"[", fs::read(path.join("comm"))?.trim_ascii_end(), b"]"].concat();
    }
    Ok(words.split(|byte| *byte == 0).map(<[u8]>::to_vec).collect())
}

/// What process `pid` has mapped, in lines of proc_pid_maps(5). An error of the kind
/// `PermissionDenied` if it is another user's.
pub fn maps(pid: u32) -> io::Result<impl BufRead> {
    let folder = Folder::of(pid)?;
    if !folder.is_own() {
        return Err(ErrorKind::PermissionDenied.into());
    }
    let open = |folder: &Path| {
        let mut maps = BufReader::new(File::open(folder.join("maps"))?);
        let is_empty = maps.fill_buf()?.is_empty();
        Ok::<_, io::Error>((maps, is_empty))
    };
    let (first, is_empty) = open(&folder.path())?;
    if !is_empty {
        return Ok(first);
    }
    // The first thread may have exited; others have the memory.
    let tasks = fs::read_dir(folder.path().join("task"))?.flatten();
    let mut others = tasks.filter_map(|task| open(&task.path()).ok());
    Ok(others.find_map(|(maps, is_empty)| (!is_empty).then_some(maps)).unwrap_or(first))
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

/// Whether the process of a pidfd still has its PID: until its parent has waited for it, no other
/// process gets that.
pub fn has_its_pid(process: &OwnedFd) -> bool {
    let (fd, no_signal) = (process.as_raw_fd(), 0);
    let no_details = ptr::null_mut::<libc::siginfo_t>();
    // SAFETY: no memory is touched, and nothing is sent.
    let sent = unsafe { libc::syscall(libc::SYS_pidfd_send_signal, fd, no_signal, no_details, 0) };
    sent == 0 || io::Error::last_os_error().raw_os_error() != Some(libc::ESRCH)
}

pub(crate) fn owned(fd: RawFd) -> OwnedFd {
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
    use std::os::unix::process::CommandExt;
    use std::process::{Command, id};
    use tare_shm::syscall;

    #[test]
    fn own_process_and_its_descriptors_are_found() {
        assert!(all().any(|pid| pid == id()));
        let file = File::open("/proc").unwrap();
        let path = PathBuf::from(format!("/proc/{}/fd/{}", id(), file.as_raw_fd()));
        assert!(descriptors(id()).unwrap().any(|found| found == path));
        assert!(descriptors(u32::MAX).is_err());
    }

    #[test]
    fn a_process_has_its_pid_until_it_is_waited_for() {
        let mut child = Command::new("true").spawn().unwrap();
        let process = pidfd(child.id()).unwrap();
        while !is_readable(&process) {
            std::thread::yield_now();
        }
        assert!(has_its_pid(&process));
        child.wait().unwrap();
        assert!(!has_its_pid(&process));
    }

    #[test]
    fn arguments_and_mappings_of_other_users_are_not_read() {
        let first = std::env::args().next().unwrap();
        assert_eq!(command(id()).unwrap()[0], first.as_bytes());
        assert!(is_own(id()) && maps(id()).is_ok());
        assert!(!is_own(u32::MAX) && users(u32::MAX).is_empty() && command(u32::MAX).is_err());
        if syscall::geteuid() != 0 {
            return;
        }
        let mut child = Command::new("sleep").arg("30").uid(65_534).spawn().unwrap();
        let program = fs::read_link(format!("/proc/{}/exe", child.id())).unwrap();
        let words = [program.as_os_str().as_bytes().to_vec(), b"...".to_vec()];
        assert_eq!((command(child.id()).unwrap(), is_own(child.id())), (words.to_vec(), false));
        let error = maps(child.id()).err().map(|error| error.kind());
        assert_eq!(error, Some(ErrorKind::PermissionDenied));
        child.kill().unwrap();
        child.wait().unwrap();
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
