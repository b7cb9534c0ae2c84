// SPDX-License-Identifier: Apache-2.0
//! The segment of another process, inherited or opened through /proc/PID/fd/N. PIDs and descriptor
//! numbers are reused, so type, file system, mode, owner and seals are checked.

use crate::memory_file::{MODE, memory_device};
use crate::peer::{self, Peers};
use crate::segment::{Access, Segment};
use crate::syscall;
use crate::{Errno, Refusal, path::Path};
use core::ffi::{CStr, c_int};
use core::fmt::Write;

const ROOT: u32 = 0;

/// What a process knows of the segment of the process that started it.
#[derive(Clone, Copy, Debug)]
pub struct StarterSegment {
    /// The starter's, which the segment's header must have.
    pub pid: u32,
    pub start: u64,
    /// The starter's descriptor, which is inherited.
    pub fd: c_int,
    pub kind: u32,
    pub version: u32,
    pub access: Access,
}

impl StarterSegment {
    /// The segment: inherited, else of the first of `processes` that has it.
    pub fn find(&self, processes: impl IntoIterator<Item = u32>) -> Option<Segment> {
        let is_own = |user| user == ROOT || peer::is_own(user);
        let inherited = check(self.fd, is_own).ok().and_then(|()| self.open(self.fd));
        inherited.or_else(|| {
            let peers = Peers::get(None);
            processes.into_iter().find_map(|pid| self.open_of(pid, &peers))
        })
    }

    fn open_of(&self, pid: u32, peers: &Peers) -> Option<Segment> {
        let mut path = Path::new();
        write!(path, "/proc/{pid}/fd/{}", self.fd).ok()?;
        let fd = open(path.text()?, self.access, |user| peers.admit(user)).ok()?;
        let segment = self.open(fd);
        syscall::close(fd);
        segment
    }

    fn open(&self, fd: c_int) -> Option<Segment> {
        let segment = Segment::open(fd, self.kind, self.version, self.access).ok()?;
        let header = segment.header();
        (header.owner_pid == self.pid && header.owner_start == self.start).then_some(segment)
    }
}

/// Opens `path` if it is a sealed memfd whose owner `is_owner` accepts.
///
/// The file is checked through O_PATH before it is opened: opening a pipe, a terminal or a device
/// has effects.
pub fn open(
    path: &CStr,
    access: Access,
    is_owner: impl FnOnce(u32) -> bool,
) -> Result<c_int, Refusal> {
    let place = syscall::open(path, libc::O_PATH)?;
    let opened = check(place, is_owner).and_then(|()| reopen(place, access));
    syscall::close(place);
    let fd = opened?;
    Segment::check_seals(fd).map(|()| fd).inspect_err(|_| syscall::close(fd))
}

/// Whether a file is on the file system of memfds; those of huge pages are on another one. Every
/// other question takes for ever if the file is one of FUSE whose server does not answer.
pub fn is_memory(place: c_int) -> Result<bool, Errno> {
    Ok(syscall::device(place)? == memory_device()?)
}

fn check(place: c_int, is_owner: impl FnOnce(u32) -> bool) -> Result<(), Refusal> {
    if !is_memory(place)? {
        return Err(Refusal::NotOurs);
    }
    let status = syscall::fstat(place)?;
    if status.st_mode != libc::S_IFREG | MODE || status.st_nlink != 0 {
        Err(Refusal::NotOurs)
    } else if !is_owner(status.st_uid) {
        Err(Refusal::Strangers(status.st_uid))
    } else {
        Ok(())
    }
}

/// Opens the file that was checked: `path` may refer to another one by now.
fn reopen(place: c_int, access: Access) -> Result<c_int, Refusal> {
    let mut path = Path::new();
    let written = write!(path, "/proc/self/fd/{place}");
    let path = written.ok().and_then(|()| path.text()).ok_or(Refusal::Damaged)?;
    Ok(syscall::open(path, access.flags())?)
}

#[cfg(all(test, not(miri)))]
mod tests {
    extern crate std;
    use super::*;
    use crate::header::kind::{HOOK, LOG};
    use std::ffi::CString;
    use std::format;

    fn path(fd: c_int) -> CString {
        CString::new(format!("/proc/self/fd/{fd}")).unwrap()
    }

    fn refusal(fd: c_int) -> Refusal {
        open(&path(fd), Access::ReadWrite, |_| true).unwrap_err()
    }

    #[test]
    fn segment_of_an_accepted_owner_is_opened() {
        let (fd, segment) = Segment::create(c"test", HOOK, 1, 4096).unwrap();
        let own = syscall::geteuid();
        for access in [Access::ReadOnly, Access::ReadWrite] {
            let found = open(&path(fd), access, |user| user == own).unwrap();
            let other = Segment::open(found, HOOK, 1, access).unwrap();
            assert_eq!(other.header(), segment.header());
            syscall::close(found);
        }
        let stranger = open(&path(fd), Access::ReadOnly, |user| user != own);
        assert_eq!(stranger, Err(Refusal::Strangers(own)));
    }

    #[test]
    fn segment_of_another_process_start_kind_or_version_is_not_adopted() {
        let (fd, segment) = Segment::create(c"test", HOOK, 1, 4096).unwrap();
        let (pid, start) = (segment.header().owner_pid, segment.header().owner_start);
        let access = Access::ReadOnly;
        let right = StarterSegment { pid, start, fd, kind: HOOK, version: 1, access };
        assert!(right.find([]).is_some());
        for wrong in [
            StarterSegment { pid: pid ^ 1, ..right },
            StarterSegment { start: start ^ 1, ..right },
            StarterSegment { kind: LOG, ..right },
            StarterSegment { version: 2, ..right },
        ] {
            assert!(wrong.find([]).is_none(), "inherited: {wrong:?}");
            assert!(wrong.find([pid]).is_none(), "found: {wrong:?}");
        }
    }

    #[test]
    fn pipes_and_ordinary_files_are_rejected() {
        let mut ends = [0; 2];
        // SAFETY: room for two.
        assert_eq!(unsafe { libc::pipe(ends.as_mut_ptr()) }, 0);
        assert_eq!(refusal(ends[0]), Refusal::NotOurs);
        let file = syscall::open(c"/proc/self/exe", libc::O_RDONLY).unwrap();
        assert_eq!(refusal(file), Refusal::NotOurs);
        let missing = open(c"/proc/self/fd/9999", Access::ReadOnly, |_| true);
        assert_eq!(missing, Err(Refusal::Failed(Errno(libc::ENOENT))));
    }

    #[test]
    fn unsealed_memfd_and_other_mode_are_rejected() {
        let fd = syscall::memfd_create(c"test", 0).unwrap();
        syscall::ftruncate(fd, 4096).unwrap();
        syscall::fchmod(fd, MODE).unwrap();
        assert_eq!(refusal(fd), Refusal::NotSealed);
        syscall::fchmod(fd, 0o600).unwrap();
        assert_eq!(refusal(fd), Refusal::NotOurs, "another mode");
    }

    #[test]
    fn memfd_of_huge_pages_is_rejected() {
        let Ok(fd) = syscall::memfd_create(c"test", libc::MFD_HUGETLB) else { return };
        syscall::fchmod(fd, MODE).unwrap();
        assert_eq!(refusal(fd), Refusal::NotOurs);
    }

    #[test]
    fn unnamed_file_of_tmpfs_is_rejected() {
        let flags = libc::O_TMPFILE | libc::O_RDWR;
        let Ok(fd) = syscall::open(c"/dev/shm", flags) else { return };
        syscall::fchmod(fd, MODE).unwrap();
        assert_eq!(refusal(fd), Refusal::NotOurs);
    }
}
