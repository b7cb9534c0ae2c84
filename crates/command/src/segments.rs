// SPDX-License-Identifier: Apache-2.0
//! The segments that a process has open: where a part of Tare finds programs whose collector has
//! ended.

use crate::processes::{descriptors, owned};
use std::collections::HashSet;
use std::ffi::{CStr, CString};
use std::fs::OpenOptions;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use tare_shm::{Access, Refusal, found, syscall};

/// A segment that a process has open.
pub struct Found {
    pub fd: OwnedFd,
    pub inode: u64,
}

/// The segments called `name` that process `pid` has open and whose owner `is_owner` accepts, each
/// once.
pub fn of(
    pid: u32,
    name: &CStr,
    access: Access,
    is_owner: impl Fn(u32) -> bool,
) -> impl Iterator<Item = Found> {
    let mut seen = HashSet::new();
    paths(pid, name).into_iter().flatten().filter_map(move |path| {
        let fd = open(&path, access, &is_owner).ok()?;
        let inode = syscall::fstat(fd.as_raw_fd()).ok()?.st_ino;
        seen.insert(inode).then_some(Found { fd, inode })
    })
}

/// The descriptors of process `pid` that have this name. Any user can call a file so.
pub fn paths(pid: u32, name: &CStr) -> io::Result<impl Iterator<Item = PathBuf>> {
    Ok(descriptors(pid)?.filter(move |path| is_named(path, name)))
}

/// Whether a descriptor has this name.
pub fn is_named(path: &Path, name: &CStr) -> bool {
    let is_it = |link: PathBuf| link.as_os_str() == format!("{} (deleted)", mapping(name)).as_str();
    path.read_link().is_ok_and(is_it)
}

/// What the kernel calls a mapping of the segment `name`.
pub fn mapping(name: &CStr) -> String {
    format!("/memfd:{}", name.to_string_lossy())
}

/// Device and inode of the file in memory at such a path, without opening it: to close any
/// descriptor of a segment releases this process's lock of it.
pub fn memory_at(path: &Path) -> Option<(u64, u64)> {
    let place = OpenOptions::new().read(true).custom_flags(libc::O_PATH).open(path).ok()?;
    if !found::is_memory(place.as_raw_fd()).ok()? {
        return None;
    }
    let status = syscall::fstat(place.as_raw_fd()).ok()?;
    Some((status.st_dev, status.st_ino))
}

/// Opens a segment of another process by such a path; see [`found::open`].
pub fn open(
    path: &Path,
    access: Access,
    is_owner: impl FnOnce(u32) -> bool,
) -> Result<OwnedFd, Refusal> {
    let path = CString::new(path.as_os_str().as_bytes()).map_err(|_| Refusal::NotOurs)?;
    found::open(&path, access, is_owner).map(owned)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::id;
    use tare_shm::Segment;
    use tare_shm::header::kind::HOOK;

    const NAME: &CStr = c"segments";

    #[test]
    fn segment_with_two_descriptors_is_found_once() {
        let (fd, segment) = Segment::create(NAME, HOOK, 1, 4096).unwrap();
        let _second = syscall::fcntl(fd, libc::F_DUPFD_CLOEXEC, 0).unwrap();
        let (_, _other) = Segment::create(c"segments-of-others", HOOK, 1, 4096).unwrap();
        assert_eq!(paths(id(), NAME).unwrap().count(), 2);
        let own = syscall::geteuid();
        let found: Vec<_> = of(id(), NAME, Access::ReadOnly, |user| user == own).collect();
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].inode, syscall::fstat(fd).unwrap().st_ino);
        let found = Segment::open(found[0].fd.as_raw_fd(), HOOK, 1, Access::ReadOnly).unwrap();
        assert_eq!(found.header(), segment.header());
    }

    #[test]
    fn segment_of_an_owner_that_is_not_accepted_is_not_opened() {
        let (fd, _segment) = Segment::create(c"refused", HOOK, 1, 4096).unwrap();
        let path = paths(id(), c"refused").unwrap().next().unwrap();
        assert_eq!(path, Path::new(&format!("/proc/{}/fd/{fd}", id())));
        assert_eq!(of(id(), c"refused", Access::ReadOnly, |_| false).count(), 0);
        assert!(paths(u32::MAX, c"refused").is_err());
    }
}
