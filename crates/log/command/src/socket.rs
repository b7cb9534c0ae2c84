// SPDX-License-Identifier: Apache-2.0
//! Where the sockets of collectors are, and what becomes of those that the dead have left.

use crate::program;
use std::env;
use std::fs::{self, Metadata};
use std::io::ErrorKind;
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A collector listens at its socket long before it is so old.
const SETTLED: Duration = Duration::from_secs(60);

const PREFIX: &str = "tare-log-";
const SUFFIX: &str = ".sock";

/// A place that nobody else has, and that programs can reach which act as another user in the
/// end. Those that killed collectors have left beside it are taken away.
pub fn of_ones_own() -> PathBuf {
    let own = env::var_os("XDG_RUNTIME_DIR").filter(|_| program::user() != 0);
    let folder = own.map(PathBuf::from).filter(|folder| folder.is_dir());
    let folder = folder.unwrap_or_else(env::temp_dir);
    for entry in folder.read_dir().into_iter().flatten().flatten() {
        let name = entry.file_name();
        let name = name.to_str().and_then(|name| name.strip_prefix(PREFIX));
        let is_ours = name.is_some_and(|rest| rest.ends_with(SUFFIX));
        // One that has just come may not listen yet.
        if is_ours && entry.metadata().is_ok_and(|status| age(&status) > SETTLED) {
            clear(&entry.path());
        }
    }
    folder.join(format!("{PREFIX}{}{SUFFIX}", std::process::id()))
}

/// Takes away a socket at which nobody listens; whether somebody does.
pub fn clear(path: &Path) -> bool {
    let is_socket = || path.symlink_metadata().is_ok_and(|file| file.file_type().is_socket());
    match UnixStream::connect(path) {
        Ok(_) => return true,
        Err(error) if error.kind() == ErrorKind::ConnectionRefused && is_socket() => {
            let _ = fs::remove_file(path);
        }
        Err(_) => {}
    }
    false
}

fn age(status: &Metadata) -> Duration {
    status.modified().ok().and_then(|since| since.elapsed().ok()).unwrap_or_default()
}
