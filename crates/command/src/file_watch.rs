// SPDX-License-Identifier: Apache-2.0
use std::ffi::CString;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Becomes readable when something was written or renamed in the folder of a file. Not the
/// file itself is watched: editors rename a new one over it.
pub struct Watch(OwnedFd);

impl Watch {
    pub fn new(file: &Path) -> io::Result<Self> {
        let folder = match file.parent() {
            Some(folder) if !folder.as_os_str().is_empty() => folder,
            _ => Path::new("."),
        };
        let folder = CString::new(folder.as_os_str().as_bytes())?;
        // SAFETY: no memory is touched.
        let fd = unsafe { libc::inotify_init1(libc::IN_CLOEXEC | libc::IN_NONBLOCK) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: a new descriptor, owned by nobody else.
        let watch = Self(unsafe { OwnedFd::from_raw_fd(fd) });
        let events = libc::IN_CLOSE_WRITE | libc::IN_MOVED_TO;
        // SAFETY: the path is terminated.
        if unsafe { libc::inotify_add_watch(fd, folder.as_ptr(), events) } < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(watch)
    }

    /// Forgets what has happened so far; whether anything had.
    pub fn clear(&self) -> bool {
        let mut buffer = [0u8; 4096];
        let mut any = false;
        // SAFETY: the kernel writes at most the buffer's length.
        while unsafe { libc::read(self.0.as_raw_fd(), buffer.as_mut_ptr().cast(), buffer.len()) }
            > 0
        {
            any = true;
        }
        any
    }
}

impl AsFd for Watch {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writing_and_renaming_are_seen() {
        let folder = std::env::temp_dir().join(format!("tare-watch-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let (file, other) = (folder.join("rules.toml"), folder.join("rules.toml.new"));
        let watch = Watch::new(&file).unwrap();
        assert!(!watch.clear());
        std::fs::write(&file, "1").unwrap();
        assert!(watch.clear());
        std::fs::write(&other, "2").unwrap();
        assert!(watch.clear());
        std::fs::rename(&other, &file).unwrap();
        assert!(watch.clear());
        assert!(!watch.clear());
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
