// SPDX-License-Identifier: Apache-2.0
use std::ffi::OsString;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;
use tare_command::program::CURE;
use tare_command::{Child, Failure, Signals, preload};
use tare_hook_segment::{Handover, VARIABLE};
use tare_shm::syscall;

/// Starts the program with the library in it.
pub fn start(
    program: &Path,
    command: &[OsString],
    library: &Path,
    handover: Handover,
    signals: &Signals,
) -> Result<Child, Failure> {
    let mut started = Command::new(program);
    if let [name, arguments @ ..] = command {
        started.arg0(name).args(arguments);
    }
    started
        .env(preload::VARIABLE, preload::value(library, &[], std::env::var_os(preload::VARIABLE)));
    started.env(VARIABLE, handover.to_string());
    // SAFETY: between fork and exec only fcntl is called, as a raw system call.
    unsafe {
        started.pre_exec(move || {
            for fd in [handover.control, handover.shared] {
                syscall::fcntl(fd, libc::F_SETFD, 0)
                    .map_err(|error| io::Error::from_raw_os_error(error.0))?;
            }
            Ok(())
        });
    }
    Child::spawn(&mut started, signals).map_err(|error| {
        Failure::input(format_args!("COMMAND {}: {error}; {CURE}", program.display()))
    })
}
