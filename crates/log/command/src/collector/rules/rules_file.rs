// SPDX-License-Identifier: Apache-2.0
use super::parse::Rules;
use std::io;
use std::os::fd::{AsFd, AsRawFd, RawFd};
use std::path::{Path, PathBuf};
use tare_command::{Failure, ResultExt, Watch, regular_file, say};

/// The rules in force, from a file that may change.
pub struct RulesFile {
    file: Option<File>,
    pub rules: Rules,
    /// Counts the files that were read; 0 for no rules at all.
    pub generation: u64,
}

struct File {
    path: PathBuf,
    watch: Watch,
    /// The last reading, good or bad: what is wrong is told once.
    last: Reading,
}

type Reading = Result<String, String>;

impl RulesFile {
    /// The rules of this file, none without one.
    pub fn open(path: Option<&Path>) -> Result<Self, Failure> {
        let Some(path) = path else {
            return Ok(Self { file: None, rules: Rules::default(), generation: 0 });
        };
        let named = format!("--rules {}", path.display());
        // Before the file is read: what is written later is seen.
        let watch = Watch::new(path).or_input(named)?;
        let last = regular_file::text(path).map_err(|error| error.to_string());
        let rules = parse(path, &last)?;
        Ok(Self { file: Some(File { path: path.into(), watch, last }), rules, generation: 1 })
    }

    /// Becomes readable when the file may have changed; -1 without one.
    pub fn fd(&self) -> RawFd {
        self.file.as_ref().map_or(-1, |file| file.watch.as_fd().as_raw_fd())
    }

    /// Reads the file again if it has changed. What is wrong with it is said, and leaves the
    /// old rules in force.
    pub fn renew(&mut self) {
        let Some(file) = self.file.as_mut().filter(|file| file.watch.clear()) else { return };
        // Between an editor's two renames there is no file: the second one is seen, too.
        let reading = match regular_file::text(&file.path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return,
            other => other.map_err(|error| error.to_string()),
        };
        if reading == file.last {
            return;
        }
        match parse(&file.path, &reading) {
            Ok(rules) => {
                self.rules = rules;
                self.generation += 1;
            }
            Err(failure) => say(format_args!("{failure}; the previous rules stay in force")),
        }
        file.last = reading;
    }
}

fn parse(path: &Path, reading: &Reading) -> Result<Rules, Failure> {
    let text = reading
        .as_ref()
        .map_err(|error| Failure::input(format_args!("--rules {}: {error}", path.display())))?;
    Rules::parse(&path.display().to_string(), text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn broken_rules_leave_the_old_ones_in_force() {
        let path = std::env::temp_dir().join(format!("tare-log-book-{}", std::process::id()));
        let write = |text: &str| std::fs::write(&path, text).unwrap();
        write("[[rule]]\npolicy = 'wait'\n");
        let mut book = RulesFile::open(Some(&path)).unwrap();
        let state = |book: &RulesFile| (book.rules.rules.len(), book.generation);
        assert_eq!(state(&book), (1, 1));
        write("[[rule]]\npolicy = 'wit'\n");
        book.renew();
        assert_eq!(state(&book), (1, 1));
        write("[[rule]]\npolicy = 'wait'\n[[rule]]\ncodec = 'lz4'\n");
        book.renew();
        assert_eq!(state(&book), (2, 2));
        std::fs::remove_file(&path).unwrap();
        book.renew();
        assert_eq!(state(&book), (2, 2));
        assert!(RulesFile::open(Some(&path)).is_err());
    }
}
