// SPDX-License-Identifier: Apache-2.0
//! Symbolic links and files of other users, and where open files are.

use rustix::fs::{self, Mode, OFlags, PROC_SUPER_MAGIC};
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

const ROOT: u32 = 0;

/// The kernel follows so many symbolic links in a path (path_resolution(7)).
const LINKS: usize = 40;

/// An error if `path` is a symbolic link that another user, not root, has made: whoever writes to
/// it writes where that user wants.
fn check(path: &Path) -> io::Result<()> {
    match path.symlink_metadata() {
        Ok(status) if status.is_symlink() => accept(status.uid(), "is a symbolic link of"),
        _ => Ok(()),
    }
}

fn accept(user: u32, what: &str) -> io::Result<()> {
    if [ROOT, rustix::process::geteuid().as_raw()].contains(&user) {
        return Ok(());
    }
    Err(io::Error::new(io::ErrorKind::PermissionDenied, format!("it {what} user {user}")))
}

/// An error if another user, not root, owns an open file: that user may have put it there to read
/// what we write or to keep us waiting. Our standard output and error may be another user's, such
/// as the terminal of a user of sudo.
fn check_owner(file: &OwnedFd) -> io::Result<()> {
    let status = fs::fstat(file)?;
    let is_same = |stream: &dyn AsFd| {
        let stream = fs::fstat(stream.as_fd());
        stream.is_ok_and(|stream| (stream.st_dev, stream.st_ino) == (status.st_dev, status.st_ino))
    };
    if is_same(&io::stdout()) || is_same(&io::stderr()) {
        return Ok(());
    }
    accept(status.st_uid, "belongs to")
}

/// The file at the end of a chain of links, also where there is none yet. A link of another user
/// is an error. A link of /proc to a pipe or a deleted file, such as /dev/stdout, leads to no
/// path: it is the end itself.
pub fn target(path: &Path) -> io::Result<PathBuf> {
    let mut path = path.to_owned();
    for _ in 0..LINKS {
        // The kernel follows a link with a slash after it.
        path = path.components().collect();
        let (Ok(next), Some(folder)) = (path.read_link(), path.parent()) else { break };
        check(&path)?;
        let next = folder.join(next);
        if path.exists() && !next.exists() {
            break;
        }
        path = next;
    }
    Ok(path)
}

/// Opens a file for output, or creates it. A link or an existing file of another user is an error.
pub fn open(path: &Path, options: &OpenOptions) -> io::Result<File> {
    let path = target(path)?;
    match options.clone().create_new(true).open(&path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        opened => return opened,
    }
    reopen(&find(&path)?, options)
}

/// A descriptor of what is at the end of a path of [`target`]. It cannot be read or written; to
/// open it waits for nothing, and follows no link.
pub fn find(target: &Path) -> io::Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    let found = fs::open(target, flags | OFlags::NOFOLLOW, Mode::empty())?;
    // Other users cannot make links in /proc.
    if fs::fstatfs(&found)?.f_type == PROC_SUPER_MAGIC {
        return Ok(fs::open(target, flags, Mode::empty())?);
    }
    Ok(found)
}

/// Opens the same file, whatever has its name now. A file of another user is an error.
pub fn reopen(file: &OwnedFd, options: &OpenOptions) -> io::Result<File> {
    check_owner(file)?;
    options.open(format!("/proc/self/fd/{}", file.as_raw_fd()))
}

/// Where an open file is now, for comparison: another path once it is renamed, and none of a file
/// that is deleted. The kernel knows this by itself: to look at a path again waits for ever if
/// another user has put a file of FUSE there whose server does not answer.
pub fn place(file: &impl AsRawFd) -> Option<PathBuf> {
    std::fs::read_link(format!("/proc/self/fd/{}", file.as_raw_fd())).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::io::{Read, Write};
    use std::os::unix::fs::symlink;

    #[test]
    fn links_end_at_a_path_or_at_a_pipe() {
        let folder = std::env::temp_dir().join(format!("tare-links-{}", std::process::id()));
        fs::create_dir(&folder).unwrap();
        symlink("second/", folder.join("first")).unwrap();
        symlink("third", folder.join("second")).unwrap();
        assert_eq!(target(&folder.join("first/")).unwrap(), folder.join("third"));
        fs::remove_dir_all(folder).unwrap();

        let (mut reader, writer) = io::pipe().unwrap();
        let path = PathBuf::from(format!("/dev/fd/{}", writer.as_raw_fd()));
        assert_eq!(target(&path).unwrap(), path);
        open(&path, File::options().write(true)).unwrap().write_all(b"new").unwrap();
        drop(writer);
        let mut text = String::new();
        reader.read_to_string(&mut text).unwrap();
        assert_eq!(text, "new");
    }

    #[test]
    fn renamed_replaced_and_deleted_files_are_elsewhere() {
        let [first, second] = ["first", "second"]
            .map(|name| std::env::temp_dir().join(format!("tare-{name}-{}", std::process::id())));
        let file = File::create(&first).unwrap();
        let before = place(&file);
        assert_eq!(before.as_deref(), Some(&*fs::canonicalize(&first).unwrap()));
        fs::rename(&first, &second).unwrap();
        assert_ne!(place(&file), before);
        fs::rename(&second, &first).unwrap();
        assert_eq!(place(&file), before);
        fs::write(&second, "").unwrap();
        fs::rename(&second, &first).unwrap();
        assert_ne!(place(&file), before, "replaced");
        fs::remove_file(&first).unwrap();
        assert_ne!(place(&file), before);
    }
}
