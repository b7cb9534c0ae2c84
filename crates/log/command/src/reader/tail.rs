// SPDX-License-Identifier: Apache-2.0
use std::fs::File;
use std::io::{Seek, SeekFrom};
use std::path::{Path, PathBuf};
use tare_command::{Failure, ResultExt, regular_file};
use tare_log_file::{Block, Reader};

/// The end of a file that grows.
pub struct Tail {
    path: PathBuf,
    file: File,
    /// Behind the last whole block that was seen.
    pub at: u64,
}

impl Tail {
    /// Of which everything is new.
    pub fn open(path: &Path) -> Result<Self, Failure> {
        let file = regular_file::open(path).or_input(path.display())?;
        Ok(Self { path: path.to_owned(), file, at: 0 })
    }

    /// Calls `take` with each whole block that is new.
    pub fn each(&mut self, mut take: impl FnMut(Block)) -> Result<(), Failure> {
        let begin = self.at;
        let mut whole = 0;
        self.file.seek(SeekFrom::Start(begin)).or_failed(self.path.display())?;
        let mut reader = Reader::new(&self.file);
        while let Some(block) = reader.next() {
            let block = block.or_failed(self.path.display())?;
            whole += block.bytes();
            // What follows may be a block that is being written.
            self.at = begin + whole + reader.damaged;
            take(block);
        }
        Ok(())
    }
}
