// SPDX-License-Identifier: Apache-2.0
use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// A file that is read more than once, now or later: of a pipe nothing would be left, and a device
/// has no end.
pub fn open(path: &Path) -> io::Result<File> {
    // Reading a pipe that has no writer would block.
    let file = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(path)?;
    if file.metadata()?.is_file() {
        Ok(file)
    } else {
        Err(io::Error::other(
            "not a regular file; save it to a file first, because it is read more than once",
        ))
    }
}

/// Bytes of a text at most: the file may be another user's, and have holes of any size.
const LARGEST_TEXT: u64 = 64 << 20;

/// The same, as a text.
pub fn text(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    let read = open(path)?.take(LARGEST_TEXT + 1).read_to_string(&mut text)? as u64;
    if read > LARGEST_TEXT {
        let limit = LARGEST_TEXT >> 20;
        return Err(io::Error::other(format!(
            "larger than {limit} MiB, which no text file here is"
        )));
    }
    Ok(text)
}
