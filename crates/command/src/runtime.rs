// SPDX-License-Identifier: Apache-2.0
//! The runtime directory, which has the sockets of collectors. Only its user can write to it.

use crate::{Failure, trust};
use std::env;
use std::fs::{self, DirBuilder, File, Metadata, OpenOptions, Permissions};
use std::io::{self, ErrorKind};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// Root's directory. Programs of all users can reach the sockets in it.
const ROOTS: &str = "/run/tare";
const FOR_ALL: u32 = 0o755;
const OWN: u32 = 0o700;

/// `$XDG_RUNTIME_DIR/tare`, for root `/run/tare`, else `/tmp/tare-UID`; created if it is missing.
///
/// Fails if another user owns it or can write to it.
pub fn directory() -> Result<PathBuf, Failure> {
    // SAFETY: no memory is touched; it cannot fail.
    let user = unsafe { libc::geteuid() };
    let (path, mode) = match (user, session_directory(user)) {
        (0, _) if Path::new("/run").is_dir() => (PathBuf::from(ROOTS), FOR_ALL),
        (1.., Some(session)) => (session.join("tare"), OWN),
        _ => (PathBuf::from(format!("/tmp/tare-{user}")), OWN),
    };
    let fails = |reason: String| Failure::input(format_args!("{}: {reason}", path.display()));
    match create(&path, mode, user) {
        Ok(None) => Ok(path),
        Ok(Some(stranger)) => Err(fails(stranger)),
        Err(error) => {
            Err(fails(format!("{error}. Set XDG_RUNTIME_DIR to a directory that you own")))
        }
    }
}

/// `$XDG_RUNTIME_DIR` if this user owns it.
fn session_directory(user: u32) -> Option<PathBuf> {
    let path = PathBuf::from(env::var_os("XDG_RUNTIME_DIR")?);
    let place = find(&path).ok()?;
    if trust::untrusted_server(&place).ok()?.is_some() {
        return None;
    }
    let status = place.metadata().ok()?;
    (path.is_absolute() && status.is_dir() && status.uid() == user).then_some(path)
}

/// What is at a path itself, not behind a link; it cannot be read.
fn find(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).custom_flags(libc::O_PATH | libc::O_NOFOLLOW).open(path)
}

/// Creates the directory; returns what is wrong with an existing one.
fn create(path: &Path, mode: u32, user: u32) -> io::Result<Option<String>> {
    let is_new = match DirBuilder::new().mode(mode).create(path) {
        Ok(()) => true,
        Err(error) if error.kind() == ErrorKind::AlreadyExists => false,
        Err(error) => return Err(error),
    };
    let place = find(path)?;
    // First, for a server of FUSE shows what owner it wants, or never answers.
    if let Some(server) = trust::untrusted_server(&place)? {
        return Ok(Some(format!(
            "in a file system that was mounted by user {server}. Unmount it, or set \
             XDG_RUNTIME_DIR to a directory that you own"
        )));
    }
    let fault = fault(&place.metadata()?, mode, user);
    if is_new && fault.is_none() {
        // The umask may have removed bits.
        let place = format!("/proc/self/fd/{}", place.as_raw_fd());
        fs::set_permissions(place, Permissions::from_mode(mode))?;
    }
    Ok(fault)
}

fn fault(status: &Metadata, mode: u32, user: u32) -> Option<String> {
    if !status.is_dir() {
        Some("not a directory; remove it".to_owned())
    } else if status.uid() != user {
        Some(format!(
            "owned by user {} (expected {user}). Remove it, or set XDG_RUNTIME_DIR to a directory \
             that you own",
            status.uid()
        ))
    } else if status.mode() & 0o777 & !mode != 0 {
        let found = status.mode() & 0o777;
        Some(format!("mode {found:o} (expected {mode:o}); run chmod {mode:o} on it"))
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn directory_is_created_once_and_checked() {
        let place = env::temp_dir().join(format!("tare-runtime-{}", std::process::id()));
        // SAFETY: no memory is touched.
        let user = unsafe { libc::geteuid() };
        fs::create_dir_all(&place).unwrap();
        let path = place.join("tare");
        for _ in 0..2 {
            assert_eq!(create(&path, OWN, user).unwrap(), None);
            assert_eq!(path.metadata().unwrap().mode() & 0o777, OWN);
        }
        let said = create(&path, OWN, user + 1).unwrap().unwrap();
        assert!(said.starts_with(&format!("owned by user {user} ")), "{said}");
        fs::set_permissions(&path, Permissions::from_mode(0o777)).unwrap();
        assert_eq!(
            create(&path, OWN, user).unwrap().unwrap(),
            "mode 777 (expected 700); run chmod 700 on it"
        );
        symlink(&path, place.join("link")).unwrap();
        let said = create(&place.join("link"), OWN, user).unwrap();
        assert_eq!(said.unwrap(), "not a directory; remove it");
        assert!(create(&place.join("none/tare"), OWN, user).is_err());
        fs::remove_dir_all(place).unwrap();
    }
}
