// SPDX-License-Identifier: Apache-2.0
//! Symbolic links of other users, and where open files are.

use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

const ROOT: u32 = 0;

/// The kernel follows so many symbolic links in a path (path_resolution(7)).
const LINKS: usize = 40;

/// An error if `path` is a symbolic link that another user, not root, has made: whoever writes to
/// it writes where that user wants.
pub fn check(path: &Path) -> io::Result<()> {
    let Ok(status) = path.symlink_metadata() else { return Ok(()) };
    // SAFETY: no memory is touched; it cannot fail.
    let own = unsafe { libc::geteuid() };
    if status.is_symlink() && ![ROOT, own].contains(&status.uid()) {
        let user = status.uid();
        let text = format!("it is a symbolic link of user {user}");
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, text));
    }
    Ok(())
}

/// The file at the end of a chain of links that [`check`] accepts, also where there is none yet.
pub fn target(path: &Path) -> io::Result<PathBuf> {
    let mut path = path.to_owned();
    for _ in 0..LINKS {
        let (Ok(next), Some(folder)) = (path.read_link(), path.parent()) else { break };
        check(&path)?;
        path = folder.join(next);
    }
    Ok(path)
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
    use std::fs::{self, File};

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
