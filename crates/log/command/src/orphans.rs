// SPDX-License-Identifier: Apache-2.0
//! Programs whose collector has died: their segments are still open under their descriptors.

use crate::program;
use crate::same_file::is_same;
use std::collections::HashSet;
use std::ffi::OsStr;
use std::fs;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering::Relaxed;
use tare_command::processes::{self, open_segment};
use tare_log_segment::Process;
use tare_log_segment::layout::{KIND, VERSION};
use tare_shm::{Access, Segment, process, service, syscall};

/// A program that logs, and that nobody serves.
pub struct Orphan {
    pub pid: u32,
    pub segment: OwnedFd,
}

/// What the kernel calls the descriptor of a segment.
const LINK: &[u8] = b"/memfd:tare-log (deleted)";

/// Those that were told of the collector at this socket.
pub fn find(socket: &Path) -> Vec<Orphan> {
    processes::all().flat_map(|pid| of(pid, socket)).collect()
}

/// One for each copy of the library in the program.
fn of(pid: u32, socket: &Path) -> Vec<Orphan> {
    segments(pid)
        .into_iter()
        .filter(|segment| {
            // The child of a fork has its parent's, too, until it logs itself.
            let is_its_own = belongs(segment, pid, socket);
            let is_served = !matches!(service::server(segment.as_raw_fd()), Ok(None));
            is_its_own && !is_served
        })
        .map(|segment| Orphan { pid, segment })
        .collect()
}

/// All segments that a program has open, and that it or root has made. Of one that this user may
/// not look into there is nothing to see.
pub fn segments(pid: u32) -> Vec<OwnedFd> {
    let users = program::users(pid);
    let descriptors = processes::descriptors(pid).into_iter().flatten();
    let links = descriptors
        .filter(|path| fs::read_link(path).is_ok_and(|link| link.as_os_str().as_bytes() == LINK));
    let mut seen = HashSet::new();
    links
        .filter_map(|path| {
            let is_owner = |user| user == 0 || users.contains(&user);
            let fd = open_segment(&path, Access::ReadWrite, is_owner).ok()?;
            let inode = syscall::fstat(fd.as_raw_fd()).ok()?.st_ino;
            // A program may have a second descriptor of the same segment.
            seen.insert(inode).then_some(fd)
        })
        .collect()
}

fn belongs(segment: &OwnedFd, pid: u32, socket: &Path) -> bool {
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
        let path = Path::new(OsStr::from_bytes(&path));
        path == socket || is_same(&PathBuf::from(format!("/proc/{pid}/cwd")).join(path), socket)
    });
    // SAFETY: what it gave out is used no more.
    unsafe { segment.unmap() };
    let is_owner = program::own_pid(pid) == Some(header.owner_pid)
        && process::start_time(pid) == Some(header.owner_start);
    told && is_owner
}
