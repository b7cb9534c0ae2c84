// SPDX-License-Identifier: Apache-2.0
//! Whether a program still is the one that it was.

use super::Producer;
use crate::procfs;
use std::mem;
use std::os::fd::AsRawFd;
use std::time::Instant;
use tare_command::processes::{self, is_hung_up, is_readable};
use tare_shm::syscall;

impl Producer {
    /// Looks whether one that logs nothing has executed another program: where a child of it
    /// holds the connection, that says nothing.
    pub fn look(&mut self) {
        let events = self.event_counts().events;
        let is_quiet = mem::replace(&mut self.events_seen, events) == events;
        self.is_replaced |= is_quiet && self.has_left_memory();
    }

    fn has_left_memory(&self) -> bool {
        if !processes::is_own(self.pid) {
            let now = procfs::place(self.pid);
            return self.place.is_some() && now.is_some() && now != self.place;
        }
        let inode = syscall::fstat(self.fd.as_raw_fd()).map(|status| status.st_ino);
        inode.is_ok_and(|inode| procfs::maps(self.pid, inode) == Some(false))
    }

    /// Whether no event can follow: the process has ended, or executed another program.
    pub fn has_ended(&mut self) -> bool {
        if self.is_replaced {
            return true;
        }
        let is_over = self.connection.as_ref().is_some_and(is_hung_up);
        // A process of a PID namespace that this one does not see has no number here.
        let Some(pidfd) = &self.pidfd else { return is_over || self.connection.is_none() };
        if is_readable(pidfd) {
            return true;
        }
        if is_over {
            // A program may have closed all descriptors, and go on.
            if self.has_left_memory() {
                return true;
            }
            self.connection = None;
        }
        false
    }

    /// Whether one that has ended may still get answers to what it asked.
    pub fn is_answered(&mut self) -> bool {
        let ended = *self.ended.get_or_insert_with(Instant::now);
        self.round_trips.patience(self.process()).is_none_or(|patience| ended.elapsed() > patience)
    }
}
