// SPDX-License-Identifier: Apache-2.0
use crate::{Signals, signal_dispositions};
use std::io;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child as Process, Command, ExitStatus};

/// A program that this command runs for its user, who should see no difference: its
/// signal mask is the one that the user gave, signals that were ignored are, and its end is
/// this command's end. It is not tied to our life: if we are killed, it goes on.
pub struct Child(Process);

impl Child {
    /// Its end arrives as SIGCHLD, which [`Signals`] must have taken.
    pub fn spawn(command: &mut Command, signals: &Signals) -> io::Result<Self> {
        let mask = signals.mask_before();
        // SAFETY: between fork and exec only pthread_sigmask and signal are called, which
        // are async-signal-safe.
        unsafe {
            command.pre_exec(move || {
                signal_dispositions::restore();
                match libc::pthread_sigmask(libc::SIG_SETMASK, &mask, std::ptr::null_mut()) {
                    0 => Ok(()),
                    error => Err(io::Error::from_raw_os_error(error)),
                }
            });
            // Where SIGCHLD is ignored, a child leaves neither a signal nor an exit code.
            libc::signal(libc::SIGCHLD, libc::SIG_DFL);
        }
        command.spawn().map(Self)
    }

    /// Sends `signal`; a child that has ended is no error.
    pub fn send(&mut self, signal: i32) {
        if let (Ok(None), Ok(process)) = (self.0.try_wait(), i32::try_from(self.0.id())) {
            // SAFETY: no memory is touched. The number is the child's: it was not waited for.
            unsafe { libc::kill(process, signal) };
        }
    }

    /// How it ended, `None` while it runs.
    pub fn ended(&mut self) -> io::Result<Option<ExitStatus>> {
        self.0.try_wait()
    }
}

/// What a shell says of a program that ended so: its exit code, or 128 and the signal.
pub fn exit_code(status: ExitStatus) -> u8 {
    let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal));
    code.unwrap_or(1) as u8
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(script: &str, signal: Option<i32>) -> u8 {
        let signals = Signals::take(&[libc::SIGCHLD]).unwrap();
        let mut child = Child::spawn(Command::new("sh").args(["-c", script]), &signals).unwrap();
        if let Some(signal) = signal {
            child.send(signal);
        }
        loop {
            if let Some(status) = child.ended().unwrap() {
                return exit_code(status);
            }
            std::thread::yield_now();
        }
    }

    #[test]
    fn the_exit_code_is_the_childs() {
        assert_eq!(run("exit 7", None), 7);
    }

    #[test]
    fn a_signal_is_passed_on_and_told_as_shells_do() {
        assert_eq!(run("exec sleep 60", Some(libc::SIGTERM)), 128 + libc::SIGTERM as u8);
    }
}
