// SPDX-License-Identifier: Apache-2.0
//! Symbolic links and files of other users, and where open files are.

use crate::trust;
use rustix::fs::{self, FileType, Mode, OFlags, PROC_SUPER_MAGIC, ResolveFlags};
use rustix::io::Errno;
use std::ffi::{OsStr, OsString};
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The kernel follows so many symbolic links in a path (path_resolution(7)).
const LINKS: usize = 40;

/// An error unless this file is root's or our own, whatever a server of FUSE says.
fn accept(file: &OwnedFd, what: &str) -> io::Result<()> {
    let refuse = |what: &str, user: u32| {
        Err(io::Error::new(io::ErrorKind::PermissionDenied, format!("it {what} user {user}")))
    };
    if let Some(user) = trust::untrusted_server(file)? {
        return refuse("is in a file system that was mounted by", user);
    }
    let user = fs::fstat(file)?.st_uid;
    if trust::is_trusted(user) { Ok(()) } else { refuse(what, user) }
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
    accept(file, "belongs to")
}

/// The path without links, also where there is nothing yet. A link of another user is an error: who
/// writes to it writes where that user wants. A link of /proc to a pipe or a deleted file, such as
/// /dev/stdout, leads to no path: it is the end itself. Those on the way stay.
pub fn target(path: &Path) -> io::Result<PathBuf> {
    let reversed = |path: &Path| -> Vec<OsString> {
        path.components().rev().map(|part| part.as_os_str().to_owned()).collect()
    };
    let (mut found, mut names, mut links) = (PathBuf::new(), reversed(path), 0);
    while let Some(name) = names.pop() {
        match name.as_bytes() {
            b"." => continue,
            b".." if found.file_name().is_some() => {
                found.pop();
                continue;
            }
            b".." if found.has_root() => continue,
            _ => found.push(name),
        }
        let Some(next) = followed(&found, names.is_empty())? else { continue };
        links += 1;
        if links > LINKS {
            return Err(io::Error::from_raw_os_error(libc::ELOOP));
        }
        found.pop();
        names.extend(reversed(&next));
    }
    Ok(if found.as_os_str().is_empty() { ".".into() } else { found })
}

/// Where the link at `path` leads; `None` if it is none, or leads to no path. An error if another
/// user, not root, has made it. On the way to something, a link of /proc may lead into what another
/// process sees, where the same path is another.
fn followed(path: &Path, is_end: bool) -> io::Result<Option<PathBuf>> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let Ok(link) = fs::open(path, flags, Mode::empty()) else { return Ok(None) };
    let status = fs::fstat(&link)?;
    if !FileType::from_raw_mode(status.st_mode).is_symlink() {
        return Ok(None);
    }
    accept(&link, "is a symbolic link of")?;
    let next = PathBuf::from(OsString::from_vec(fs::readlinkat(&link, "", [])?.into_bytes()));
    let is_path = || {
        let (here, there) = (path.metadata().ok()?, path.parent()?.join(&next).metadata().ok()?);
        Some((here.dev(), here.ino()) == (there.dev(), there.ino()))
    };
    let is_of_proc = fs::fstatfs(&link)?.f_type == PROC_SUPER_MAGIC;
    Ok((!is_of_proc || is_end && is_path() == Some(true)).then_some(next))
}

/// The descriptor of the folder at a path of [`target`]. A link that came into the path since then
/// is an error.
pub fn folder(target: &Path) -> io::Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    // Links of /proc may be left.
    let without_links = if target.starts_with("/proc") {
        Err(Errno::NOSYS)
    } else {
        fs::openat2(fs::CWD, target, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS)
    };
    match without_links {
        // EPERM: of a sandbox that does not know the call.
        Err(Errno::NOSYS | Errno::PERM) => Ok(fs::open(target, flags, Mode::empty())?),
        opened => Ok(opened?),
    }
}

/// The folder of a path of [`target`], and the name there.
pub fn parent_and_name(target: &Path) -> io::Result<(OwnedFd, OsString)> {
    let name = target.file_name().ok_or(io::ErrorKind::IsADirectory)?;
    let parent = target.parent().filter(|parent| !parent.as_os_str().is_empty());
    Ok((folder(parent.unwrap_or(Path::new(".")))?, name.to_owned()))
}

/// Opens a file for output, or creates it. A link or an existing file of another user is an error.
pub fn open(path: &Path, options: &OpenOptions) -> io::Result<File> {
    let (folder, name) = parent_and_name(&target(path)?)?;
    let place = Path::new(&format!("/proc/self/fd/{}", folder.as_raw_fd())).join(&name);
    match options.clone().create_new(true).open(place) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        opened => return opened,
    }
    reopen(&find_in(&folder, &name)?, options)
}

/// A descriptor of what is at the end of a path of [`target`]. It cannot be read or written; to
/// open it waits for nothing, and follows no link.
pub fn find(target: &Path) -> io::Result<OwnedFd> {
    let (folder, name) = parent_and_name(target)?;
    find_in(&folder, &name)
}

fn find_in(folder: &OwnedFd, name: &OsStr) -> io::Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    let found = fs::openat(folder, name, flags | OFlags::NOFOLLOW, Mode::empty())?;
    // Other users cannot make links in /proc.
    if fs::fstatfs(&found)?.f_type == PROC_SUPER_MAGIC {
        return Ok(fs::openat(folder, name, flags, Mode::empty())?);
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
        symlink(".", folder.join("here")).unwrap();
        symlink("/", folder.join("root")).unwrap();
        symlink("loop", folder.join("loop")).unwrap();
        let on_the_way = folder.join("here/./here/../second");
        assert_eq!(target(&on_the_way).unwrap(), folder.parent().unwrap().join("second"));
        assert_eq!(target(&folder.join("root/../new")).unwrap(), Path::new("/new"));
        assert_eq!(target(Path::new("a/../../b")).unwrap(), Path::new("../b"));
        let error = target(&folder.join("loop/file")).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::ELOOP));

        // A link that comes later is not followed either.
        let (way, new) = (folder.join("way"), folder.join("way/new"));
        fs::create_dir(&way).unwrap();
        let found = target(&new).unwrap();
        fs::remove_dir(&way).unwrap();
        symlink("here", &way).unwrap();
        assert!(parent_and_name(&found).is_err());
        fs::remove_dir_all(folder).unwrap();

        let (mut reader, writer) = io::pipe().unwrap();
        let path = PathBuf::from(format!("/dev/fd/{}", writer.as_raw_fd()));
        let end = format!("/proc/self/fd/{}", writer.as_raw_fd());
        assert_eq!(target(&path).unwrap(), Path::new(&end));
        let beyond = Path::new("/proc/self/root/tmp/new");
        assert_eq!(target(beyond).unwrap(), beyond);
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
