// SPDX-License-Identifier: Apache-2.0
//! Where the sockets of collectors are, and what becomes of those that the dead have left.

use crate::procfs;
use rustix::fs::{AtFlags, Mode, OFlags, RenameFlags, openat, renameat_with, statat, unlinkat};
use std::collections::hash_map::RandomState;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File, Metadata, Permissions};
use std::hash::BuildHasher;
use std::io;
use std::iter;
use std::mem::{ManuallyDrop, MaybeUninit};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tare_command::{Failure, links, runtime};

/// A collector listens at its socket long before it is so old.
const SETTLED: Duration = Duration::from_secs(60);

/// Bytes of the path of a socket, its end included (unix(7)).
const LONGEST_PATH: usize = 108;

const PREFIX: &str = "log-";
const SUFFIX: &str = ".sock";

/// A place that nobody else has, and that programs can reach which act as another user in the
/// end. Those that killed collectors have left beside it are taken away.
pub fn of_ones_own() -> Result<PathBuf, Failure> {
    let folder = runtime::directory()?;
    for entry in folder.read_dir().into_iter().flatten().flatten() {
        let name = entry.file_name();
        let name = name.to_str().and_then(|name| name.strip_prefix(PREFIX));
        let is_ours = name.is_some_and(|rest| rest.ends_with(SUFFIX));
        // One that was just made may not listen yet.
        if is_ours && entry.metadata().is_ok_and(|status| age(&status) > SETTLED) {
            clear(&entry.path());
        }
    }
    Ok(folder.join(format!("{PREFIX}{}{SUFFIX}", std::process::id())))
}

/// A socket at which this process listens, deleted at the end.
pub struct Listening {
    /// Not closed before the process exits: connections that nobody has accepted are closed with
    /// it, and with them descriptors that other users have sent (see `receiver.rs`).
    pub listener: ManuallyDrop<UnixListener>,
    pub path: PathBuf,
    /// The path, from the root on.
    absolute: PathBuf,
    /// The socket's file, and where it was made.
    file: File,
    place: Option<PathBuf>,
    folder: OwnedFd,
    name: OsString,
}

impl Listening {
    /// Listens at `path`, which must be free.
    ///
    /// The socket is made under a random name and renamed when it listens: a program that connected
    /// before would be refused, and would keep its events to itself.
    pub fn at(path: &Path, mode: u32) -> io::Result<Self> {
        let is_short = path.as_os_str().len() < LONGEST_PATH;
        let name = path.file_name().filter(|_| is_short).ok_or_else(|| {
            let text =
                format!("not the path of a socket: those have 1 to {} bytes", LONGEST_PATH - 1);
            io::Error::new(io::ErrorKind::InvalidInput, text)
        })?;
        let absolute = std::path::absolute(path)?;
        let (folder, name) = (folder(path)?, name.to_owned());
        let random = RandomState::new().hash_one(());
        let hidden = format!("{PREFIX}{}-{random:016x}{SUFFIX}", std::process::id());
        // Short, however long the path of the folder is.
        let place = PathBuf::from(format!("/proc/self/fd/{}/{hidden}", folder.as_raw_fd()));
        let listener = UnixListener::bind(&place)?;
        let file = find(&folder, OsStr::new(&hidden))
            .and_then(|file| set_mode(&file, mode).map(|()| file))
            .and_then(|file| rename(&folder, &hidden, &name).map(|()| file))
            .inspect_err(|_| drop(fs::remove_file(&place)))?;
        let listener = ManuallyDrop::new(listener);
        let place = links::place(&file);
        Ok(Self { listener, path: path.to_owned(), absolute, file, place, folder, name })
    }

    /// Absolute paths of the socket: as it was given, and without symbolic links.
    pub fn paths(&self) -> Vec<PathBuf> {
        iter::once(&self.absolute).chain(&self.place).cloned().collect()
    }

    /// Whether the socket is where it was made.
    pub fn is_there(&self) -> bool {
        self.place.is_some() && links::place(&self.file) == self.place
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        if self.is_there() {
            remove(&self.folder, &self.name, &self.file);
        }
    }
}

/// Sets the permissions of the socket that was made, whatever another user has put under its name
/// meanwhile.
fn set_mode(socket: &File, mode: u32) -> io::Result<()> {
    let status = socket.metadata()?;
    if !status.file_type().is_socket() || status.uid() != procfs::user() {
        return Err(io::Error::other("another user has replaced it"));
    }
    let place = format!("/proc/self/fd/{}", socket.as_raw_fd());
    fs::set_permissions(place, Permissions::from_mode(mode))
}

/// Renames a file within a folder, unless the new name is taken.
fn rename(folder: &OwnedFd, from: &str, to: &OsStr) -> io::Result<()> {
    let renamed = renameat_with(folder, from, folder, to, RenameFlags::NOREPLACE);
    renamed.map_err(|error| match error.into() {
        error if io::Error::kind(&error) == io::ErrorKind::AlreadyExists => {
            io::Error::from_raw_os_error(libc::EADDRINUSE)
        }
        error => error,
    })
}

/// The folder of a path. A link of another user on the way to it is an error: that user could
/// choose where the socket is made, and what has its name when it is deleted.
fn folder(path: &Path) -> io::Result<OwnedFd> {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    links::folder(&links::target(parent.unwrap_or(Path::new(".")))?)
}

/// What has this name, not behind a link; it cannot be read.
fn find(folder: &OwnedFd, name: &OsStr) -> io::Result<File> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(openat(folder, name, flags, Mode::empty())?.into())
}

/// Deletes a file, if it still has this name.
fn remove(folder: &OwnedFd, name: &OsStr, file: &File) {
    let is_it = |made: Metadata| {
        statat(folder, name, AtFlags::SYMLINK_NOFOLLOW)
            .is_ok_and(|found| (found.st_dev, found.st_ino) == (made.dev(), made.ino()))
    };
    if file.metadata().is_ok_and(is_it) {
        let _ = unlinkat(folder, name, AtFlags::empty());
    }
}

/// Takes away a socket of this user at which nobody listens; whether somebody does.
pub fn clear(path: &Path) -> bool {
    // Before it is tried: another collector may give its own socket the name of a dead one.
    let dead = || {
        let (folder, name) = (folder(path).ok()?, path.file_name()?);
        let file = find(&folder, name).ok()?;
        Some((folder, name, file))
    };
    let dead = dead();
    let is_own_socket =
        |file: Metadata| file.file_type().is_socket() && file.uid() == procfs::user();
    match connect(path).map_err(|error| error.raw_os_error()) {
        // A full queue: the listener is alive, but slow.
        Ok(()) | Err(Some(libc::EAGAIN)) => return true,
        Err(Some(libc::ECONNREFUSED)) => {
            if let Some((folder, name, file)) = dead
                && file.metadata().is_ok_and(is_own_socket)
            {
                remove(&folder, name, &file);
            }
        }
        Err(_) => {}
    }
    false
}

/// Connects without blocking, unlike `UnixStream::connect`, which waits while the queue is full.
fn connect(path: &Path) -> io::Result<()> {
    let kind = libc::SOCK_STREAM | libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
    // SAFETY: zeros are an address.
    let mut address: libc::sockaddr_un = unsafe { MaybeUninit::zeroed().assume_init() };
    address.sun_family = libc::AF_UNIX as libc::sa_family_t;
    let path = path.as_os_str().as_bytes();
    if path.len() >= address.sun_path.len() {
        return Err(io::Error::from_raw_os_error(libc::ENAMETOOLONG));
    }
    for (place, byte) in address.sun_path.iter_mut().zip(path) {
        *place = *byte as _;
    }
    // SAFETY: no memory is touched.
    let socket = unsafe { libc::socket(libc::AF_UNIX, kind, 0) };
    if socket < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: a new descriptor, owned by nobody else.
    let socket = unsafe { OwnedFd::from_raw_fd(socket) };
    let size = size_of::<libc::sockaddr_un>() as libc::socklen_t;
    // SAFETY: the address lives as long as the call.
    match unsafe { libc::connect(socket.as_raw_fd(), (&raw const address).cast(), size) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

fn age(status: &Metadata) -> Duration {
    status.modified().ok().and_then(|since| since.elapsed().ok()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixStream;
    use std::thread;

    fn own_place(name: &str) -> PathBuf {
        std::env::temp_dir().join(format!("tare-{name}-{}", std::process::id()))
    }

    #[test]
    fn socket_that_has_its_name_accepts_connections() {
        let path = own_place("race");
        for _ in 0..500 {
            let looking = thread::spawn({
                let path = path.clone();
                move || loop {
                    match connect(&path) {
                        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                        done => break done,
                    }
                }
            });
            let socket = Listening::at(&path, 0o600).unwrap();
            assert!(looking.join().unwrap().is_ok());
            drop(socket);
        }
    }

    #[test]
    fn socket_is_made_with_its_mode_at_a_free_path_only() {
        let folder = own_place("modes");
        fs::create_dir(&folder).unwrap();
        // Longer than any path of a socket in this folder could be under another name.
        let path = folder.join("x".repeat(LONGEST_PATH - 2 - folder.as_os_str().len()));
        let socket = Listening::at(&path, 0o604).unwrap();
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o604);
        assert_eq!(connect(&path).unwrap(), ());
        let taken = Listening::at(&path, 0o600).err().unwrap();
        assert_eq!(taken.raw_os_error(), Some(libc::EADDRINUSE));
        let long = path.with_file_name("x".repeat(LONGEST_PATH));
        assert_eq!(Listening::at(&long, 0o600).err().unwrap().kind(), io::ErrorKind::InvalidInput);
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 1, "nothing else is left");
        drop(socket);
        fs::remove_dir(&folder).unwrap();
    }

    #[test]
    fn what_another_user_has_put_there_keeps_its_mode() {
        let folder = own_place("replaced");
        fs::create_dir(&folder).unwrap();
        let (file, link) = (folder.join("file"), folder.join("link"));
        fs::write(&file, "").unwrap();
        fs::set_permissions(&file, Permissions::from_mode(0o600)).unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        for path in [&file, &link] {
            let (folder, name) = (super::folder(path).unwrap(), path.file_name().unwrap());
            assert!(set_mode(&find(&folder, name).unwrap(), 0o666).is_err());
        }
        assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn socket_of_a_successor_is_not_deleted() {
        let path = own_place("successor");
        let first = Listening::at(&path, 0o600).unwrap();
        fs::remove_file(&path).unwrap();
        let second = Listening::at(&path, 0o600).unwrap();
        drop(first);
        assert!(path.exists());
        drop(second);
        assert!(!path.exists());
    }

    #[test]
    fn socket_is_deleted_where_it_was_made_and_nowhere_else() {
        let folder = own_place("elsewhere");
        let (first, second, link) = (folder.join("1"), folder.join("2"), folder.join("link"));
        for folder in [&first, &second] {
            fs::create_dir_all(folder).unwrap();
        }
        std::os::unix::fs::symlink(&first, &link).unwrap();
        let socket = Listening::at(&link.join("socket"), 0o600).unwrap();
        fs::write(second.join("socket"), "of another program").unwrap();
        fs::remove_file(&link).unwrap();
        std::os::unix::fs::symlink(&second, &link).unwrap();
        drop(socket);
        assert!(!first.join("socket").exists() && second.join("socket").exists());
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn socket_with_a_full_queue_is_kept_without_blocking() {
        let path = std::env::temp_dir().join(format!("tare-full-{}", std::process::id()));
        let listener = UnixListener::bind(&path).unwrap();
        // SAFETY: a queue of no length has room for one.
        assert_eq!(unsafe { libc::listen(listener.as_raw_fd(), 0) }, 0);
        let first = UnixStream::connect(&path).unwrap();
        assert_eq!(connect(&path).unwrap_err().raw_os_error(), Some(libc::EAGAIN));
        assert!(clear(&path) && path.exists());
        drop((first, listener));
        assert!(!clear(&path) && !path.exists(), "nobody listens");
        fs::write(&path, "").unwrap();
        assert!(!clear(&path) && path.exists(), "it is no socket");
        fs::remove_file(&path).unwrap();
    }
}
