// SPDX-License-Identifier: Apache-2.0
//! The network namespaces of all processes.

use crate::Error;
use std::collections::HashMap;
use std::fs::{self, File};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use tare_command::processes;

const OWN: &str = "/proc/self/ns/net";

/// The network namespace of this process, and ways into others.
pub struct Namespaces {
    own: File,
    own_number: u32,
}

impl Namespaces {
    pub fn new() -> Result<Self, Error> {
        let failed = |error| Error::new(OWN, error);
        let own = File::open(OWN).map_err(failed)?;
        let own_number = own.metadata().map_err(failed)?.ino() as u32;
        Ok(Self { own, own_number })
    }

    /// All that have a process, by their inode numbers: a path to each, and none for the own one. Some
    /// cannot be entered; without root, it is only the own one that can.
    pub fn all(&self) -> HashMap<u32, Option<PathBuf>> {
        self.all_and_hidden().0
    }

    /// The same, and whether those of some processes may not be seen.
    pub fn all_and_hidden(&self) -> (HashMap<u32, Option<PathBuf>>, bool) {
        let mut found = HashMap::from([(self.own_number, None)]);
        let mut has_hidden = false;
        for pid in processes::all() {
            let path = PathBuf::from(format!("/proc/{pid}/ns/net"));
            match fs::metadata(&path) {
                Ok(status) => _ = found.entry(status.ino() as u32).or_insert(Some(path)),
                Err(error) => has_hidden |= error.kind() == io::ErrorKind::PermissionDenied,
            }
        }
        (found, has_hidden)
    }

    /// Calls `act` in the namespace; the thread comes back.
    pub fn inside<T>(
        &self,
        path: Option<&PathBuf>,
        act: impl FnOnce() -> io::Result<T>,
    ) -> io::Result<T> {
        let Some(path) = path else { return act() };
        enter(&File::open(path)?)?;
        let done = act();
        enter(&self.own)?;
        done
    }
}

fn enter(file: &File) -> io::Result<()> {
    // SAFETY: the call has no pointers.
    match unsafe { libc::setns(file.as_raw_fd(), libc::CLONE_NEWNET) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}
