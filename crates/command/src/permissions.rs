// SPDX-License-Identifier: Apache-2.0
//! Who may read and write a new file.

use rustix::fs::{self, Gid, Mode, OFlags, XattrFlags};
use rustix::io::Errno;
use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use tare_shm::peer;

pub const PRIVATE: u32 = 0o600;
pub const EVERYBODY: u32 = 0o666;
const ACCESS_LIST: &str = "system.posix_acl_access";
/// Longer lists are not kept.
const ACCESS_LIST_BYTES: usize = 4096;

/// Gives a new file the permissions of the file that it replaces, if that is this user's; else the
/// usual ones.
pub fn permit(file: &File, folder: &OwnedFd, name: &OsStr) -> io::Result<()> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let replaced = fs::openat(folder, name, flags, Mode::empty()).ok().and_then(|replaced| {
        let status = fs::fstat(&replaced).ok()?;
        let is_file = fs::FileType::from_raw_mode(status.st_mode).is_file();
        (is_file && peer::is_own(status.st_uid)).then_some((replaced, status))
    });
    let Some((replaced, status)) = replaced else {
        return Ok(fs::fchmod(file, Mode::from_raw_mode(EVERYBODY & !umask()))?);
    };
    let mut mode = status.st_mode & EVERYBODY;
    let has_group = fs::fstat(file)?.st_gid == status.st_gid
        || fs::fchown(file, None, Some(Gid::from_raw(status.st_gid))).is_ok();
    if !has_group || !keep_access_list(file, &replaced) {
        // Its group, and the users of its list, are others now: they get what both had.
        let both = mode >> 3 & mode & 0o7;
        mode = mode & PRIVATE | both << 3 | both;
    }
    Ok(fs::fchmod(file, Mode::from_raw_mode(mode))?)
}

/// Gives a new file the access control list (acl(5)) of the file that it replaces, or none if that
/// has none: what its folder gave it says nothing of this file. False if that is not possible.
fn keep_access_list(file: &File, replaced: &OwnedFd) -> bool {
    let replaced = format!("/proc/self/fd/{}", replaced.as_raw_fd());
    let mut list = [0; ACCESS_LIST_BYTES];
    let removed = |error| matches!(error, Errno::NODATA | Errno::OPNOTSUPP);
    match fs::getxattr(replaced, ACCESS_LIST, &mut list[..]) {
        Ok(length) => {
            fs::fsetxattr(file, ACCESS_LIST, &list[..length], XattrFlags::empty()).is_ok()
        }
        Err(error) if removed(error) => {
            fs::fremovexattr(file, ACCESS_LIST).is_ok()
                || fs::fgetxattr(file, ACCESS_LIST, &mut list[..]).is_err_and(removed)
        }
        Err(_) => false,
    }
}

/// From /proc, since it can be asked for only by changing it for all threads.
pub fn umask() -> u32 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("Umask:"));
    line.and_then(|mask| u32::from_str_radix(mask.trim(), 8).ok()).unwrap_or(0o777 & !PRIVATE)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::NewFile;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn whoever_could_not_read_a_file_cannot_read_the_file_that_replaces_it() {
        // Of version 2: its user may write, one more user read, and its group nothing.
        let entry = |tag: u16, rights: u16, user: u32| {
            [&tag.to_le_bytes()[..], &rights.to_le_bytes(), &user.to_le_bytes()].concat()
        };
        let none = u32::MAX;
        let entries = [(1, 6, none), (2, 4, 1234), (4, 0, none), (16, 4, none), (32, 0, none)];
        let entries = entries.map(|(tag, rights, user)| entry(tag, rights, user)).concat();
        let list = [&2u32.to_le_bytes()[..], &entries].concat();
        let folder = std::env::temp_dir().join(format!("tare-list-{}", std::process::id()));
        std::fs::create_dir(&folder).unwrap();
        let out = folder.join("out");
        std::fs::write(&out, "old").unwrap();
        let set = fs::setxattr(&out, ACCESS_LIST, &list, XattrFlags::empty());
        if set == Err(Errno::OPNOTSUPP) {
            return std::fs::remove_dir_all(folder).unwrap();
        }
        set.unwrap();
        NewFile::create(&out).unwrap().finish().unwrap();
        let mut found = [0; 256];
        let length = fs::getxattr(&out, ACCESS_LIST, &mut found[..]).unwrap();
        assert_eq!(found[..length], list);

        // A list that the folder gives to new files is not the file's.
        fs::removexattr(&out, ACCESS_LIST).unwrap();
        std::fs::set_permissions(&out, PermissionsExt::from_mode(0o640)).unwrap();
        fs::setxattr(&folder, "system.posix_acl_default", &list, XattrFlags::empty()).unwrap();
        NewFile::create(&out).unwrap().finish().unwrap();
        assert_eq!(fs::getxattr(&out, ACCESS_LIST, &mut found[..]), Err(Errno::NODATA));
        assert_eq!(out.metadata().unwrap().permissions().mode() & 0o777, 0o640);
        std::fs::remove_dir_all(folder).unwrap();
    }
}
