// SPDX-License-Identifier: Apache-2.0
//! Symbolic links of other users.

use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

const ROOT: u32 = 0;

/// An error if `path` is a symbolic link that another user, not root, has made: whoever writes to
/// it writes where that user wants.
pub fn check(path: &Path) -> io::Result<()> {
    let Ok(status) = path.symlink_metadata() else { return Ok(()) };
    // SAFETY: no memory is touched; it cannot fail.
    let own = unsafe { libc::geteuid() };
    if status.is_symlink() && ![ROOT, own].contains(&status.uid()) {
        let user = status.uid();
        return Err(io::Error::other(format!("it is a symbolic link of user {user}")));
    }
    Ok(())
}
