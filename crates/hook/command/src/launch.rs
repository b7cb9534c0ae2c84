// SPDX-License-Identifier: Apache-2.0
use crate::program::CURE;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use tare_command::{Child, Failure, ResultExt, Signals};
use tare_hook_segment::{Handover, VARIABLE};
use tare_shm::syscall;

const PRELOAD: &str = "LD_PRELOAD";

/// The preload library, which stands beside this program: `../lib/libtare_hook.so`.
pub fn library() -> Result<PathBuf, Failure> {
    let program = std::env::current_exe().or_failed("the path of this program")?;
    let root = program.parent().and_then(Path::parent).unwrap_or(Path::new("/"));
    let library = root.join("lib").join("libtare_hook.so");
    let shown = library.display();
    if !library.is_file() {
        return Err(Failure::work(format_args!("{shown}: not found; build it with 'make native'")));
    }
    if library.as_os_str().as_bytes().iter().any(|byte| b" :\t\n".contains(byte)) {
        return Err(Failure::work(format_args!(
            "{shown}: LD_PRELOAD cannot name a path with spaces or colons; install Tare elsewhere"
        )));
    }
    Ok(library)
}

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
    started.env(PRELOAD, preload(library, std::env::var_os(PRELOAD)));
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

/// The library before whatever was preloaded already: layers stack.
fn preload(library: &Path, others: Option<OsString>) -> OsString {
    let mut all = library.as_os_str().to_owned();
    if let Some(others) = others.filter(|others| !others.is_empty()) {
        all.push(OsStr::new(":"));
        all.push(others);
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_layers_stay() {
        let library = Path::new("/lib/hook.so");
        assert_eq!(preload(library, None), "/lib/hook.so");
        assert_eq!(preload(library, Some("".into())), "/lib/hook.so");
        assert_eq!(preload(library, Some("/a.so /b.so".into())), "/lib/hook.so:/a.so /b.so");
    }
}
