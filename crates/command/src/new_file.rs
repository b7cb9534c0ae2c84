// SPDX-License-Identifier: Apache-2.0
//! Files, and folders of files, that are whole under their name or not there at all, also where
//! other users may write.

use crate::links;
use crate::permissions::{EVERYBODY, PRIVATE, permit, umask};
use rustix::fs::{self, AtFlags, Mode, OFlags};
use std::cell::RefCell;
use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

/// How a directory is opened: its descriptor stays the same directory's under any name.
const DIRECTORY: OFlags =
    OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// A file that takes the place of another, or of none, when it is finished. Until then it has a
/// random name and is private. Links and files that another user puts there are neither followed
/// nor written to, and nothing is removed but what was made here.
#[derive(Debug)]
pub struct NewFile {
    file: File,
    /// `None` of a pipe or a device, which is written to itself, and once it is finished.
    place: Option<Place>,
}

#[derive(Debug)]
struct Place {
    folder: OwnedFd,
    hidden: OsString,
    name: OsString,
}

impl NewFile {
    /// Who has named a link means what it leads to. A link or a pipe of another user is an error.
    pub fn create(path: &Path) -> io::Result<Self> {
        let path = links::target(path)?;
        let Some(pipe_or_device) = pipe_or_device(&path)? else { return Self::replace(&path) };
        // Opening it may wait for a reader, as the shell does.
        let file = links::reopen(&pipe_or_device, File::options().write(true))?;
        Ok(Self { file, place: None })
    }

    /// The same, but a link, a pipe or a device of this name is replaced as well.
    pub fn replace(path: &Path) -> io::Result<Self> {
        let (folder, name) = links::parent_and_name(path)?;
        let hidden = hidden();
        let file = create(&folder, &hidden, OFlags::RDWR, PRIVATE)?;
        Ok(Self { file, place: Some(Place { folder, hidden, name }) })
    }

    /// The same for a name at which nothing may be.
    pub fn create_first(path: &Path) -> io::Result<Self> {
        if path.symlink_metadata().is_ok() {
            return Err(io::Error::from_raw_os_error(libc::EEXIST));
        }
        Self::create(path)
    }

    /// A second descriptor of it.
    pub fn file(&self) -> io::Result<File> {
        self.file.try_clone()
    }

    /// The file is whole: it is on the disk under its name when this returns.
    pub fn finish(self) -> io::Result<()> {
        if self.place.is_some() {
            self.file.sync_all()?;
        }
        self.finish_unsynced()
    }

    /// The same for who cannot wait for the disk: after a power failure it may be empty.
    pub fn finish_unsynced(mut self) -> io::Result<()> {
        if let Some(Place { folder, hidden, name }) = &self.place {
            permit(&self.file, folder, name)?;
            fs::renameat(folder, hidden, folder, name)?;
        }
        self.place = None;
        Ok(())
    }
}

impl Drop for NewFile {
    fn drop(&mut self) {
        if let Some(Place { folder, hidden, .. }) = &self.place
            && let Ok(made) = identity(&self.file)
        {
            remove(folder, hidden, made, AtFlags::empty());
        }
    }
}

fn pipe_or_device(path: &Path) -> io::Result<Option<OwnedFd>> {
    let Ok(found) = links::find(path) else { return Ok(None) };
    let kind = fs::FileType::from_raw_mode(fs::fstat(&found)?.st_mode);
    Ok((!kind.is_file() && !kind.is_dir()).then_some(found))
}

/// Opens the file that is there, or a new one, for who writes it while others read it: it is not
/// emptied. A link or a file of another user is an error.
pub fn open_in_place(path: &Path) -> io::Result<File> {
    links::open(path, File::options().write(true))
}

/// A folder that was not there or was empty, and has all its files when it is finished.
#[derive(Debug)]
pub struct NewFolder {
    directory: OwnedFd,
    /// `None` of one that was there: it may be what somebody stands in.
    place: Option<Place>,
    made: RefCell<HashMap<OsString, Identity>>,
    is_finished: bool,
}

impl NewFolder {
    /// Who has named a link means what it leads to; one of another user is an error.
    pub fn create(path: &Path) -> io::Result<Self> {
        let path = &links::target(path)?;
        let made = RefCell::default();
        if path.exists() {
            let directory = fs::openat(links::folder(path)?, ".", DIRECTORY, Mode::empty())?;
            if !is_empty(&directory)? {
                return Err(io::Error::other("the folder is not empty; give another"));
            }
            return Ok(Self { directory, place: None, made, is_finished: false });
        }
        if let Some(parent) = path.parent() {
            std::fs::create_dir_all(parent)?;
        }
        let (folder, name) = links::parent_and_name(path)?;
        let hidden = hidden();
        fs::mkdirat(&folder, &hidden, Mode::RWXU)?;
        let opened = fs::openat(&folder, &hidden, DIRECTORY, Mode::empty());
        let directory = opened.inspect_err(|_| {
            // Without a descriptor, only an empty folder can be removed safely.
            let _ = fs::unlinkat(&folder, &hidden, AtFlags::REMOVEDIR);
        })?;
        let place = Some(Place { folder, hidden, name });
        Ok(Self { directory, place, made, is_finished: false })
    }

    /// Opens a file at its end, which is made the first time.
    pub fn append(&self, name: &str) -> io::Result<File> {
        let mut made = self.made.borrow_mut();
        let Some(known) = made.get(OsStr::new(name)) else {
            let flags = OFlags::WRONLY | OFlags::APPEND;
            let file = create(&self.directory, OsStr::new(name), flags, EVERYBODY)?;
            made.insert(name.into(), identity(&file)?);
            return Ok(file);
        };
        let flags = OFlags::WRONLY | OFlags::APPEND | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = fs::openat(&self.directory, name, flags, Mode::empty())?;
        if identity(&file)? != *known {
            return Err(io::Error::other(format!("another program has replaced its file {name}")));
        }
        Ok(file.into())
    }

    /// All files are whole.
    pub fn finish(mut self) -> io::Result<()> {
        for name in self.made.borrow().keys() {
            let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            fs::fsync(fs::openat(&self.directory, name, flags, Mode::empty())?)?;
        }
        if let Some(Place { folder, hidden, name }) = &self.place {
            fs::fchmod(&self.directory, Mode::from_raw_mode(0o777 & !umask()))?;
            fs::renameat(folder, hidden, folder, name)?;
        }
        self.is_finished = true;
        Ok(())
    }
}

impl Drop for NewFolder {
    fn drop(&mut self) {
        if self.is_finished {
            return;
        }
        for (name, made) in self.made.borrow().iter() {
            remove(&self.directory, name, *made, AtFlags::empty());
        }
        if let Some(Place { folder, hidden, .. }) = &self.place
            && let Ok(made) = identity(&self.directory)
        {
            remove(folder, hidden, made, AtFlags::REMOVEDIR);
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Identity {
    device: u64,
    inode: u64,
}

fn identity(file: impl AsFd) -> io::Result<Identity> {
    let status = fs::fstat(file)?;
    Ok(Identity { device: status.st_dev, inode: status.st_ino })
}

fn remove(folder: &OwnedFd, name: &OsStr, made: Identity, flags: AtFlags) {
    let is_there = fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW)
        .is_ok_and(|status| made == Identity { device: status.st_dev, inode: status.st_ino });
    if is_there {
        let _ = fs::unlinkat(folder, name, flags);
    }
}

fn create(folder: &OwnedFd, name: &OsStr, flags: OFlags, mode: u32) -> io::Result<File> {
    let new = OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(fs::openat(folder, name, flags | new, Mode::from_raw_mode(mode))?.into())
}

fn is_empty(directory: &OwnedFd) -> io::Result<bool> {
    for entry in fs::Dir::read_from(directory)? {
        if ![c".", c".."].contains(&entry?.file_name()) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// A name that nobody can guess.
pub(crate) fn hidden() -> OsString {
    format!(".tare-{:016x}", RandomState::new().hash_one(())).into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::os::unix::fs::{PermissionsExt, symlink};
    use std::path::PathBuf;

    fn folder(name: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("tare-new-{}-{name}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir(&folder).unwrap();
        folder
    }

    fn names(folder: &Path) -> Vec<String> {
        let entries = std::fs::read_dir(folder).unwrap();
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<_> = names.collect();
        names.sort();
        names
    }

    #[test]
    fn a_file_that_was_there_stays_until_the_new_one_is_whole() {
        let folder = folder("file");
        let (out, link) = (folder.join("out"), folder.join("link"));
        std::fs::write(&out, "old").unwrap();
        std::fs::set_permissions(&out, PermissionsExt::from_mode(0o640)).unwrap();
        symlink("out", &link).unwrap();
        for (is_whole, expected) in [(false, "old"), (true, "new")] {
            let new = NewFile::create(&link).unwrap();
            new.file().unwrap().write_all(b"new").unwrap();
            assert_eq!(std::fs::read_to_string(&out).unwrap(), "old");
            if is_whole {
                new.finish().unwrap();
            } else {
                drop(new);
            }
            assert_eq!(std::fs::read_to_string(&out).unwrap(), expected);
            assert_eq!(names(&folder), ["link", "out"]);
        }
        assert!(link.is_symlink());
        assert_eq!(out.metadata().unwrap().permissions().mode() & 0o777, 0o640);
        std::fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn a_file_is_private_while_it_is_written_and_what_others_put_there_stays() {
        let folder = folder("private");
        let new = NewFile::create(&folder.join("out")).unwrap();
        let hidden = folder.join(&names(&folder)[0]);
        assert_eq!(hidden.metadata().unwrap().permissions().mode() & 0o777, PRIVATE);
        std::fs::rename(&hidden, folder.join("elsewhere")).unwrap();
        std::fs::write(&hidden, "of another program").unwrap();
        drop(new);
        assert_eq!(std::fs::read_to_string(&hidden).unwrap(), "of another program");
        std::fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn a_device_is_written_to_itself() {
        let new = NewFile::create(Path::new("/dev/null")).unwrap();
        new.file().unwrap().write_all(b"new").unwrap();
        new.finish().unwrap();
        assert!(!Path::new("/dev/null").metadata().unwrap().is_file());
    }

    #[test]
    fn a_pipe_is_written_to_itself_or_replaced() {
        let folder = folder("pipe");
        let pipe = folder.join("pipe");
        let mode = Mode::RUSR | Mode::WUSR;
        fs::mknodat(fs::CWD, &pipe, fs::FileType::Fifo, mode, 0).unwrap();
        let text = std::thread::scope(|scope| {
            let reader = scope.spawn(|| std::fs::read_to_string(&pipe).unwrap());
            let new = NewFile::create(&pipe).unwrap();
            new.file().unwrap().write_all(b"new").unwrap();
            new.finish().unwrap();
            reader.join().unwrap()
        });
        assert_eq!(text, "new");
        NewFile::replace(&pipe).unwrap().finish().unwrap();
        assert!(pipe.symlink_metadata().unwrap().is_file());
        std::fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn a_folder_has_all_files_or_none() {
        let folder = folder("folder");
        let (new, empty) = (folder.join("new"), folder.join("empty"));
        std::fs::create_dir(&empty).unwrap();
        for is_whole in [false, true] {
            for out in [&new, &empty] {
                let made = NewFolder::create(out).unwrap();
                for part in ["one", "two"] {
                    made.append("part").unwrap().write_all(part.as_bytes()).unwrap();
                }
                if is_whole {
                    made.finish().unwrap();
                    assert_eq!(std::fs::read_to_string(out.join("part")).unwrap(), "onetwo");
                }
            }
            let expected: &[&str] = if is_whole { &["empty", "new"] } else { &["empty"] };
            assert_eq!(names(&folder), expected);
            assert_eq!(names(&empty).len(), usize::from(is_whole));
        }
        assert!(NewFolder::create(&new).is_err());
        std::fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn what_others_put_into_a_folder_is_neither_written_to_nor_removed() {
        let folder = folder("planted");
        let out = folder.join("out");
        std::fs::create_dir(&out).unwrap();
        let secret = folder.join("secret");
        std::fs::write(&secret, "secret").unwrap();
        let new = NewFolder::create(&out).unwrap();
        symlink(&secret, out.join("planted")).unwrap();
        assert!(new.append("planted").is_err());
        drop(new.append("part").unwrap());
        std::fs::rename(&secret, out.join("part")).unwrap();
        assert!(new.append("part").is_err());
        drop(new);
        assert_eq!(names(&out), ["part", "planted"]);
        assert_eq!(std::fs::read_to_string(out.join("part")).unwrap(), "secret");
        std::fs::remove_dir_all(folder).unwrap();
    }
}
