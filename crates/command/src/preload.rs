// SPDX-License-Identifier: Apache-2.0
//! The preload library of a part, and the environment variable that loads it.

use crate::{Failure, ResultExt};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
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

/// The library before what was preloaded already, but behind the libraries whose file names are in
/// `front`: layers stack.
pub fn value(library: &Path, front: &[&str], others: Option<OsString>) -> OsString {
    let others = others.unwrap_or_default();
    let is_separator = |byte: &u8| b": ".contains(byte);
    let names = others.as_bytes().split(is_separator).filter(|name| !name.is_empty());
    let mut all: Vec<&[u8]> = names.collect();
    let is_front = |path: &&[u8]| {
        let name = Path::new(OsStr::from_bytes(path)).file_name();
        name.is_some_and(|name| front.iter().any(|library| name == *library))
    };
    let place = all.iter().rposition(is_front).map_or(0, |last| last + 1);
    all.insert(place, library.as_os_str().as_bytes());
    OsString::from_vec(all.join(&b':'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_layers_stay() {
        let library = Path::new("/lib/link.so");
        let value = |others: &str| value(library, &["hook.so"], Some(others.into()));
        assert_eq!(super::value(library, &[], None), "/lib/link.so");
        assert_eq!(value(""), "/lib/link.so");
        assert_eq!(value("/a.so /b.so"), "/lib/link.so:/a.so:/b.so");
    }

    #[test]
    fn libraries_of_the_front_stay_in_front() {
        let library = Path::new("/lib/link.so");
        let value = |others: &str| value(library, &["hook.so"], Some(others.into()));
        assert_eq!(value("/lib/hook.so"), "/lib/hook.so:/lib/link.so");
        assert_eq!(value("/a.so:/x/hook.so /b.so"), "/a.so:/x/hook.so:/lib/link.so:/b.so");
        assert_eq!(value("/hook.so/b.so"), "/lib/link.so:/hook.so/b.so");
    }
}
