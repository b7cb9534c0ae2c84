// SPDX-License-Identifier: Apache-2.0
use crate::seccomp_filter;
use std::ffi::OsString;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use tare_command::program::CURE;
use tare_command::{Child, Failure, Signals, links, open_in_place, preload};
use tare_link_segment::{Handover, LOG_VARIABLE, VARIABLE};
use tare_shm::syscall;

/// Libraries that see the program's calls before they reach a link: the hook finds keywords in
/// linked streams, too.
const IN_FRONT: [&str; 1] = ["libtare_hook.so"];

/// Starts the program with the library in it.
pub fn start(
    program: &Path,
    command: &[OsString],
    library: &Path,
    handover: Handover,
    has_filter: bool,
    signals: &Signals,
) -> Result<Child, Failure> {
    let mut started = Command::new(program);
    if let [name, arguments @ ..] = command {
        started.arg0(name).args(arguments);
    }
    let others = std::env::var_os(preload::VARIABLE);
    started.env(preload::VARIABLE, preload::value(library, &IN_FRONT, others));
    started.env(VARIABLE, handover.to_string());
    if let Some(file) = log_file()? {
        started.env(LOG_VARIABLE, file);
    }
    // SAFETY: between fork and exec only fcntl and prctl are called.
    unsafe {
        started.pre_exec(move || {
            syscall::fcntl(handover.statistics, libc::F_SETFD, 0)
                .map_err(|error| io::Error::from_raw_os_error(error.0))?;
            if has_filter { seccomp_filter::install() } else { Ok(()) }
        });
    }
    Child::spawn(&mut started, signals).map_err(|error| {
        Failure::input(format_args!("COMMAND {}: {error}; {CURE}", program.display()))
    })
}

/// The file of `TARE_LINK_LOG`, made if there is none, as programs in any directory name it: they
/// follow no link.
fn log_file() -> Result<Option<PathBuf>, Failure> {
    let Some(name) = std::env::var_os(LOG_VARIABLE).filter(|name| !name.is_empty()) else {
        return Ok(None);
    };
    let open = |path: PathBuf| {
        let path = links::target(&path)?;
        if path.is_symlink() {
            return Err(io::Error::other("programs cannot open it by its name"));
        }
        open_in_place(&path)?;
        Ok(Some(path))
    };
    std::path::absolute(&name).and_then(open).map_err(|error| {
        let shown = Path::new(&name).display();
        Failure::input(format_args!("{LOG_VARIABLE}={shown}: {error}; give a writable file"))
    })
}
