// SPDX-License-Identifier: Apache-2.0
//! Programs whose collector has died: their segments are still open under their descriptors.

use crate::procfs;
use std::ffi::OsStr;
use std::fs;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;
use tare_command::{processes, segments};
use tare_log_segment::layout::{KIND, NAME, VERSION};
use tare_log_segment::{Identity, Process};
use tare_shm::{Access, Segment, peer, service};

/// A program that logs, and that nobody serves.
pub struct UnservedSegment {
    pub pid: u32,
    pub segment: OwnedFd,
}

/// Looks through the descriptors of all processes, of which a user can have very many: so not all
/// at once.
pub struct SegmentSearch {
    descriptors: Box<dyn Iterator<Item = (u32, PathBuf)>>,
    /// Absolute paths of the collector's socket.
    socket: Vec<PathBuf>,
}

impl SegmentSearch {
    pub fn begin(socket: Vec<PathBuf>) -> Self {
        let of =
            |pid| processes::descriptors(pid).into_iter().flatten().map(move |path| (pid, path));
        Self { descriptors: Box::new(processes::all().flat_map(of)), socket }
    }

    /// The next of the programs that were told of the collector's socket, looked for until then;
    /// whether the search has ended.
    ///
    /// What this collector serves is not opened: closing it would release the lock. If a program
    /// exchanges a descriptor at that moment, its segment is found all the same, and has to be
    /// locked again.
    pub fn next(
        &mut self,
        is_served_here: impl Fn(Identity) -> bool,
        until: Instant,
    ) -> (Option<UnservedSegment>, bool) {
        for (pid, path) in &mut self.descriptors {
            let file =
                if segments::is_named(&path, NAME) { segments::memory_at(&path) } else { None };
            let file = file.map(|(device, inode)| Identity { device, inode });
            let is_new = file.is_some_and(|is| !is_served_here(is));
            let open = || segments::open(&path, Access::ReadWrite, |user| is_owner(pid, user)).ok();
            let segment = is_new.then(open).flatten();
            let found = segment.filter(|segment| {
                let fd = segment.as_raw_fd();
                // The child of a fork has its parent's, too, until it logs itself.
                let is_orphan = || {
                    belongs(segment, pid, &self.socket) && matches!(service::server(fd), Ok(None))
                };
                Identity::of(fd).is_ok_and(&is_served_here) || is_orphan()
            });
            let unserved = found.map(|segment| UnservedSegment { pid, segment });
            if unserved.is_some() || Instant::now() >= until {
                return (unserved, false);
            }
        }
        (None, true)
    }
}

/// All segments that a program has open, and that it or root has made. Of one that this user may
/// not look into there is nothing to see.
pub fn segments_of(pid: u32) -> impl Iterator<Item = OwnedFd> {
    let found = segments::of(pid, NAME, Access::ReadWrite, move |user| is_owner(pid, user));
    found.map(|found| found.fd)
}

fn is_owner(pid: u32, user: u32) -> bool {
    user == 0 || peer::is_one_user(user) && processes::users(pid).contains(&user)
}

fn belongs(segment: &OwnedFd, pid: u32, socket: &[PathBuf]) -> bool {
    let (fd, mapped) = (segment.as_raw_fd(), size_of::<Process>());
    let Ok(segment) = Segment::open_begun(fd, KIND, VERSION, Access::ReadOnly, mapped) else {
        return false;
    };
    let header = segment.header();
    // SAFETY: atomics only, and nothing is written.
    let process: Option<&Process> = unsafe { segment.at(0) };
    let told = process.is_some_and(|process| {
        let path = process.socket.iter().map(|byte| byte.load(Relaxed));
        let path: Vec<_> = path.take_while(|byte| *byte != 0).collect();
        is_told(pid, Path::new(OsStr::from_bytes(&path)), socket)
    });
    // SAFETY: what it gave out is used no more.
    unsafe { segment.unmap() };
    told && procfs::is_owner(pid, header)
}

/// Whether a program means this socket by a path. Paths are only compared: to look at one takes for
/// ever where another user has put a file of FUSE. A program that names the socket by a symbolic
/// link comes by itself, when its ring fills.
fn is_told(pid: u32, path: &Path, socket: &[PathBuf]) -> bool {
    let folder = || fs::read_link(format!("/proc/{pid}/cwd")).ok();
    let told =
        if path.is_absolute() { Some(path.into()) } else { folder().map(|at| at.join(path)) };
    told.is_some_and(|told| socket.contains(&told))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io;
    use std::os::fd::{FromRawFd, RawFd};
    use std::os::unix::process::CommandExt;
    use std::process::{Command, Stdio, id};
    use std::time::Duration;
    use tare_shm::{Errno, syscall};

    /// The segment of a program that was told of this socket.
    fn create(socket: &str) -> OwnedFd {
        let size = size_of::<Process>().next_multiple_of(4096);
        let (fd, segment) = Segment::create(NAME, KIND, VERSION, size).unwrap();
        // SAFETY: atomics only.
        let process: &Process = unsafe { segment.at(0) }.unwrap();
        for (to, from) in process.socket.iter().zip(socket.bytes()) {
            to.store(from, Relaxed);
        }
        // SAFETY: nothing else owns it.
        unsafe { OwnedFd::from_raw_fd(fd) }
    }

    /// The process that is found to have a segment that nobody serves.
    fn owner(socket: &str) -> Option<u32> {
        let until = Instant::now() + Duration::from_hours(1);
        SegmentSearch::begin(vec![socket.into()]).next(|_| false, until).0.map(|found| found.pid)
    }

    /// Starts a process that keeps a descriptor until its standard input ends.
    fn keeper_of(fd: RawFd) -> std::process::Child {
        let mut command = Command::new("cat");
        // SAFETY: one system call between fork and exec.
        unsafe {
            command.pre_exec(move || {
                let done = syscall::fcntl(fd, libc::F_SETFD, 0);
                done.map(drop).map_err(|Errno(number)| io::Error::from_raw_os_error(number))
            })
        };
        command.stdin(Stdio::piped()).spawn().unwrap()
    }

    #[test]
    fn child_that_has_the_segment_of_its_parent_is_not_taken_over() {
        let socket = format!("/nowhere/takeover-{}", id());
        let segment = create(&socket);
        let mut child = keeper_of(segment.as_raw_fd());
        assert_eq!(owner(&socket), Some(id()));
        drop(segment);
        assert_eq!(segments_of(child.id()).count(), 1);
        assert_eq!(owner(&socket), None);
        drop(child.stdin.take());
        child.wait().unwrap();
    }
}
