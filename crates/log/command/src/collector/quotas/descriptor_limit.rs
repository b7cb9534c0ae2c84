// SPDX-License-Identifier: Apache-2.0
//! How many descriptors a process may have open.

use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;

#[derive(Clone, Copy)]
pub struct DescriptorLimit(libc::rlimit);

impl DescriptorLimit {
    /// Of this process.
    pub fn get() -> io::Result<Self> {
        let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
        // SAFETY: the kernel writes the limit.
        checked(unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) })?;
        Ok(Self(limit))
    }

    /// Lets this process have as many as it may allow itself: every program takes some. Says
    /// what was before.
    pub fn raise() -> io::Result<Self> {
        let before = Self::get()?;
        Self(libc::rlimit { rlim_cur: before.0.rlim_max, ..before.0 }).set()?;
        Ok(before)
    }

    /// What `command` starts has this limit.
    pub fn give(self, command: &mut Command) {
        // SAFETY: between fork and exec there is one system call, which is async-signal-safe.
        unsafe { command.pre_exec(move || self.set()) };
    }

    fn set(self) -> io::Result<()> {
        // SAFETY: the kernel reads the limit.
        checked(unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raw const self.0) })
    }

    /// Numbers of descriptors are below this one.
    pub fn end(self) -> u64 {
        self.0.rlim_cur
    }
}

fn checked(result: i32) -> io::Result<()> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
