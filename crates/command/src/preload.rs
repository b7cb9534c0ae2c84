// SPDX-License-Identifier: Apache-2.0
//! The preload library of a part, and the environment variable that loads it.

use crate::{Failure, ResultExt};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

pub const VARIABLE: &str = "LD_PRELOAD";

/// The library next to this program: `../lib/NAME`.
pub fn library(name: &str) -> Result<PathBuf, Failure> {
    let program = std::env::current_exe().or_failed("the path of this program")?;
    let root = program.parent().and_then(Path::parent).unwrap_or(Path::new("/"));
    let library = root.join("lib").join(name);
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

/// The library before whatever was preloaded already: layers stack.
pub fn value(library: &Path, others: Option<OsString>) -> OsString {
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
        assert_eq!(value(library, None), "/lib/hook.so");
        assert_eq!(value(library, Some("".into())), "/lib/hook.so");
        assert_eq!(value(library, Some("/a.so /b.so".into())), "/lib/hook.so:/a.so /b.so");
    }
}
