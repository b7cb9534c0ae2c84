// SPDX-License-Identifier: Apache-2.0
use crate::{Failure, NewFile, links, regular_file, say};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use tare_tables::{COSTS, Vacant};

/// How often costs are written.
const TURN: Duration = Duration::from_secs(1);

/// How often while nothing is done but waiting: each file that is replaced is work for the disk.
const IDLE_TURN: Duration = Duration::from_secs(5);

/// A file that always holds what a layer cost up to now, as one whole stream: it is replaced
/// at once, whenever we are killed.
#[derive(Debug)]
pub struct CostsFile {
    /// As the user named it.
    shown: PathBuf,
    /// Where that leads: a link stays a link.
    path: PathBuf,
    renewed: Instant,
    told: bool,
}

impl CostsFile {
    /// Writes the first costs, which shows that it can be done.
    pub fn create(
        shown: &Path,
        write: impl FnOnce(Vacant) -> io::Result<()>,
    ) -> Result<Self, Failure> {
        let refuse = |reason| Failure::input(format_args!("--costs {}: {reason}", shown.display()));
        let unsafe_link = |error| refuse(format!("{error}; give another file"));
        let path = links::target(shown).map_err(unsafe_link)?;
        let file = Self { shown: shown.into(), path, renewed: Instant::now(), told: false };
        if file.path.metadata().is_ok_and(|status| !status.is_file()) {
            return Err(refuse(
                "not a regular file; give a regular file, which each update replaces".to_owned(),
            ));
        }
        if has_something_else(&file.path) {
            return Err(refuse(
                "the file exists and contains no costs; give another \
                               file"
                    .to_owned(),
            ));
        }
        let written = file.replace(write);
        written.map_err(|error| refuse(format!("{error}; give a writable file")))?;
        Ok(file)
    }

    /// Renews the file when it is time.
    pub fn turn(&mut self, is_idle: bool, write: impl FnOnce(Vacant) -> io::Result<()>) {
        if self.renewed.elapsed() >= if is_idle { IDLE_TURN } else { TURN } {
            self.renew(write);
        }
    }

    /// Renews the file. The first error after a success is told.
    pub fn renew(&mut self, write: impl FnOnce(Vacant) -> io::Result<()>) {
        self.renewed = Instant::now();
        let done = self.replace(write);
        let told = std::mem::replace(&mut self.told, done.is_err());
        if let Err(error) = done
            && !told
        {
            say(format_args!(
                "--costs {}: {error}; the next attempt follows",
                self.shown.display()
            ));
        }
    }

    /// A power failure may take it; a disk that is slow does not hold the layer up.
    fn replace(&self, write: impl FnOnce(Vacant) -> io::Result<()>) -> io::Result<()> {
        let fresh = NewFile::replace(&self.path)?;
        write(Vacant::of(fresh.file()?)?)?;
        fresh.finish_unsynced()
    }
}

fn has_something_else(path: &Path) -> bool {
    let has_costs = || regular_file::open(path).is_ok_and(|file| COSTS.is_in(file));
    path.metadata().is_ok_and(|status| status.len() > 0) && !has_costs()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;
    use tare_tables::SAMPLES;

    #[test]
    fn a_link_stays_and_its_target_is_replaced() {
        let folder = std::env::temp_dir().join(format!("tare-costs-{}", std::process::id()));
        std::fs::create_dir_all(folder.join("there")).unwrap();
        symlink("second", folder.join("first")).unwrap();
        symlink("there/costs", folder.join("second")).unwrap();
        for _ in 0..2 {
            let write = |vacant: Vacant| vacant.begin(&COSTS, &["layer"])?.finish();
            CostsFile::create(&folder.join("first"), write).unwrap();
        }
        assert!(folder.join("first").is_symlink() && folder.join("second").is_symlink());
        let names: Vec<_> = folder.join("there").read_dir().unwrap().collect();
        assert_eq!(names.len(), 1);
        assert!(folder.join("there/costs").metadata().unwrap().len() > 0);
        std::fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn another_table_stays() {
        let file = std::env::temp_dir().join(format!("tare-table-{}", std::process::id()));
        Vacant::of(std::fs::File::create(&file).unwrap())
            .unwrap()
            .begin(&SAMPLES, &["seq"])
            .unwrap()
            .finish()
            .unwrap();
        let before = std::fs::read(&file).unwrap();
        let created = CostsFile::create(&file, |_| unreachable!());
        assert!(created.unwrap_err().to_string().contains("contains no costs"));
        assert_eq!(std::fs::read(&file).unwrap(), before);
        std::fs::remove_file(file).unwrap();
    }
}
