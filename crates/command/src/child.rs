// SPDX-License-Identifier: Apache-2.0
use crate::Signals;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child as Process, Command, ExitStatus};

/// A program that this command runs for its user, who should see no difference: its
/// signal mask is the one that the user gave, its end is this command's end. It is not
/// tied to our life: if we are killed, it goes on.
pub struct Child {
    process: Process,
    pidfd: OwnedFd,
}

impl Child {
    pub fn spawn(command: &mut Command, signals: &Signals) -> io::Result<Self> {
        let mask = signals.mask_before();
        // SAFETY: between fork and exec only pthread_sigmask is called, which is
        // async-signal-safe.
        unsafe {
            command.pre_exec(move || {
                match libc::pthread_sigmask(libc::SIG_SETMASK, &mask, std::ptr::null_mut()) {
                    0 => Ok(()),
                    error => Err(io::Error::from_raw_os_error(error)),
                }
            });
        }
        let process = command.spawn()?;
        // SAFETY: no memory is touched; the child is not reaped yet, so its number is its own.
        let fd = unsafe { libc::syscall(libc::SYS_pidfd_open, process.id(), 0) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: a new descriptor, owned by nobody else.
        Ok(Self { process, pidfd: unsafe { OwnedFd::from_raw_fd(fd as i32) } })
    }

    pub fn id(&self) -> u32 {
        self.process.id()
    }

    /// Sends `signal`; a child that has ended is no error.
    pub fn send(&self, signal: i32) {
        // SAFETY: the descriptor is open, and without siginfo no memory is touched.
        unsafe {
            libc::syscall(
                libc::SYS_pidfd_send_signal,
                self.pidfd.as_raw_fd(),
                signal,
                std::ptr::null::<libc::siginfo_t>(),
                0,
            );
        }
    }

    /// How it ended, `None` while it runs.
    pub fn ended(&mut self) -> io::Result<Option<ExitStatus>> {
        self.process.try_wait()
    }
}

/// Readable once the child has ended.
impl AsFd for Child {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.pidfd.as_fd()
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
        let signals = Signals::take(&[]).unwrap();
        let mut child = Child::spawn(Command::new("sh").args(["-c", script]), &signals).unwrap();
        if let Some(signal) = signal {
            child.send(signal);
        }
        loop {
            if let Some(status) = child.ended().unwrap() {
                return exit_code(status);
            }
            let mut wait =
                libc::pollfd { fd: child.as_fd().as_raw_fd(), events: libc::POLLIN, revents: 0 };
            // SAFETY: one descriptor, which lives as long as the call.
            unsafe { libc::poll(&mut wait, 1, -1) };
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
