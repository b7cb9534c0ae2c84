// SPDX-License-Identifier: Apache-2.0
use std::os::fd::RawFd;
use std::process::ExitStatus;
use tare_command::{Child, Failure, ResultExt, Signal};

/// What a session lasts as long as.
pub trait Followed {
    /// Readable when it may have ended; -1 where a signal says so.
    fn fd(&self) -> RawFd;

    /// What a signal to this process means for it.
    fn signal(&mut self, signal: Signal);

    fn has_ended(&mut self) -> Result<bool, Failure>;
}

/// A program that was started here.
pub struct Started {
    child: Child,
    pub status: Option<ExitStatus>,
}

impl Started {
    pub fn new(child: Child) -> Self {
        Self { child, status: None }
    }
}

impl Followed for Started {
    fn fd(&self) -> RawFd {
        -1
    }

    fn signal(&mut self, signal: Signal) {
        // What the terminal sent went to the program as well; SIGCHLD is for us.
        if !signal.from_kernel {
            self.child.send(signal.number);
        }
    }

    fn has_ended(&mut self) -> Result<bool, Failure> {
        self.status = self.child.ended().or_failed("the program cannot be waited for")?;
        Ok(self.status.is_some())
    }
}
