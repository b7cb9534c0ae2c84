// SPDX-License-Identifier: Apache-2.0
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use tare_command::Failure;

/// Refuses to write into one of the files that are read.
pub fn must_not_be(files: &[PathBuf], out: &Path, what: &str) -> Result<(), Failure> {
    if files.iter().any(|file| is_same(file, out)) {
        return Err(Failure::input(format_args!("{what}: it is the file to read; give another")));
    }
    Ok(())
}

pub fn is_same(first: &Path, second: &Path) -> bool {
    let place = |path| fs::metadata(path).map(|status| (status.dev(), status.ino()));
    matches!((place(first), place(second)), (Ok(first), Ok(second)) if first == second)
}
