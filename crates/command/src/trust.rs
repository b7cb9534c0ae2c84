// SPDX-License-Identifier: Apache-2.0
//! Whose files are trusted: root's and this user's. A file system of FUSE shows what owners its
//! server wants, so who has mounted it counts, too.

use rustix::fs::{self, FsWord};
use std::fs::read;
use std::io::{self, ErrorKind};
use std::os::fd::{AsFd, AsRawFd};
use tare_shm::peer;

const ROOT: u32 = 0;
const FUSE_SUPER_MAGIC: FsWord = 0x6573_5546;

/// Whether files of this user are root's or our own. All users without an ID of their own have the
/// overflow ID, so it is nobody's.
pub fn is_trusted(user: u32) -> bool {
    user == ROOT || peer::is_own(user)
}

/// The user who has mounted the file system of an open file, if it is one of FUSE and this user is
/// not trusted. The server of the file system is asked nothing, for it need not answer.
pub fn untrusted_server(file: impl AsFd) -> io::Result<Option<u32>> {
    let file = file.as_fd();
    let text = read(format!("/proc/self/fdinfo/{}", file.as_raw_fd()))?;
    let text = String::from_utf8_lossy(&text);
    let mount = text.lines().find_map(|line| line.strip_prefix("mnt_id:")).unwrap_or("").trim();
    let mounts = read("/proc/self/mountinfo")?;
    if let Some(server) = server(&mounts, mount.as_bytes()) {
        return Ok(server.filter(|user| !is_trusted(*user)));
    }
    // Pipes are on a mount that is not listed. So is what lies outside of the root folder, and what
    // was unmounted meanwhile.
    if fs::fstatfs(file)?.f_type == FUSE_SUPER_MAGIC {
        return Err(io::Error::new(
            ErrorKind::PermissionDenied,
            "it was unmounted while it was looked at",
        ));
    }
    Ok(None)
}

/// Of a mount in /proc/self/mountinfo (proc_pid_mountinfo(5)) the user who serves its files; `None`
/// if it is not listed.
fn server(mounts: &[u8], mount: &[u8]) -> Option<Option<u32>> {
    // Names have no newline, but may have bytes that are no text.
    let mut lines = mounts.split(|byte| *byte == b'\n');
    let line = lines.find(|line| line.split(|byte| *byte == b' ').next() == Some(mount))?;
    let line = String::from_utf8_lossy(line);
    let (_, file_system) = line.split_once(" - ")?;
    let kind = file_system.split(' ').next()?;
    let mut options = file_system.rsplit(' ').next()?.split(',');
    let user = options.find_map(|option| option.strip_prefix("user_id=")?.parse().ok());
    Some(user.filter(|_| kind.starts_with("fuse")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;

    #[test]
    fn who_serves_files_is_known_of_fuse_only() {
        let mounts = b"25 1 8:1 / / rw - ext4 /dev/sda1 rw,user_id=7\n\
                       99 25 0:44 / /tmp/\xff rw shared:9 - fuse.sshfs a\\040b rw,user_id=7,group_id=8\n\
                       9 25 0:45 / /mnt rw - fuse x rw,user_id=0,allow_other\n";
        assert_eq!(server(mounts, b"25"), Some(None));
        assert_eq!(server(mounts, b"99"), Some(Some(7)));
        assert_eq!(server(mounts, b"9"), Some(Some(0)));
        assert_eq!(server(mounts, b"5"), None);
    }

    #[test]
    fn files_and_pipes_of_this_machine_have_no_server() {
        let (reader, _writer) = io::pipe().unwrap();
        assert_eq!(untrusted_server(&reader).unwrap(), None);
        assert_eq!(untrusted_server(File::open("/proc/self/stat").unwrap()).unwrap(), None);
        assert_eq!(untrusted_server(File::open("/").unwrap()).unwrap(), None);
    }
}
