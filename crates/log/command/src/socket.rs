// SPDX-License-Identifier: Apache-2.0
//! Where the sockets of collectors are, and what becomes of those that the dead have left.

use std::fs::{self, Metadata};
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tare_command::{Failure, runtime};

/// A collector listens at its socket long before it is so old.
const SETTLED: Duration = Duration::from_secs(60);

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
        // One that has just come may not listen yet.
        if is_ours && entry.metadata().is_ok_and(|status| age(&status) > SETTLED) {
            clear(&entry.path());
        }
    }
    Ok(folder.join(format!("{PREFIX}{}{SUFFIX}", std::process::id())))
}

/// Takes away a socket at which nobody listens; whether somebody does.
pub fn clear(path: &Path) -> bool {
    let is_socket = || path.symlink_metadata().is_ok_and(|file| file.file_type().is_socket());
    match connect(path).map_err(|error| error.raw_os_error()) {
        // A full queue: the listener is alive, but slow.
        Ok(()) | Err(Some(libc::EAGAIN)) => return true,
        Err(Some(libc::ECONNREFUSED)) if is_socket() => {
            let _ = fs::remove_file(path);
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
    use std::os::unix::net::{UnixListener, UnixStream};

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
