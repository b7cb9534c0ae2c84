// SPDX-License-Identifier: Apache-2.0
use crate::costs::Costs;
use std::io;
use std::path::{Path, PathBuf};
use tare_clock::Rate;
use tare_command::Failure;
use tare_tables::Vacant;

/// The kernel follows so many symbolic links in a path (path_resolution(7)).
const LINKS: usize = 40;

/// A file that always holds what the hook cost up to now, as one whole stream: it is replaced
/// at once, whenever we are killed.
pub struct CostsFile {
    /// As the user named it.
    shown: PathBuf,
    /// Where that leads: a link stays a link.
    path: PathBuf,
    told: bool,
}

impl CostsFile {
    /// Writes the first `costs`, which shows that it can be done.
    pub fn create(
        shown: &Path,
        costs: &Costs,
        rate: Rate,
        events_lost: u64,
    ) -> Result<Self, Failure> {
        let file = Self { shown: shown.into(), path: target(shown), told: false };
        let refuse = |reason| Failure::input(format_args!("--costs {}: {reason}", shown.display()));
        if file.path.metadata().is_ok_and(|status| !status.is_file()) {
            return Err(refuse(
                "not a regular file; costs need one, which they replace every second".to_owned(),
            ));
        }
        let written = file.replace(costs, rate, events_lost);
        written.map_err(|error| refuse(format!("{error}; name a file that can be written")))?;
        Ok(file)
    }

    /// Renews the file. The first error after a success is told.
    pub fn renew(&mut self, costs: &Costs, rate: Rate, events_lost: u64) -> Result<(), Failure> {
        let done = self.replace(costs, rate, events_lost);
        let told = std::mem::replace(&mut self.told, done.is_err());
        match done {
            Err(error) if !told => {
                let shown = self.shown.display();
                Err(Failure::work(format_args!("--costs {shown}: {error}; it is tried again")))
            }
            _ => Ok(()),
        }
    }

    fn replace(&self, costs: &Costs, rate: Rate, events_lost: u64) -> io::Result<()> {
        let mut fresh = self.path.clone().into_os_string();
        fresh.push(".new");
        let vacant = Vacant::open(fresh.as_ref())?;
        costs
            .write(vacant, rate, events_lost)
            .and_then(|()| std::fs::rename(&fresh, &self.path))
            // What did not fit takes no room from others.
            .inspect_err(|_| drop(std::fs::remove_file(&fresh)))
    }
}

/// The file at the end of a chain of links, also where there is none yet.
fn target(path: &Path) -> PathBuf {
    let mut path = path.to_owned();
    for _ in 0..LINKS {
        let (Ok(next), Some(folder)) = (path.read_link(), path.parent()) else { break };
        path = folder.join(next);
    }
    path
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::segments::Segments;
    use std::os::unix::fs::symlink;
    use tare_clock::Snapshot;

    #[test]
    fn a_link_stays_and_its_target_is_replaced() {
        let folder = std::env::temp_dir().join(format!("tare-costs-{}", std::process::id()));
        std::fs::create_dir_all(folder.join("there")).unwrap();
        symlink("second", folder.join("first")).unwrap();
        symlink("there/costs", folder.join("second")).unwrap();
        let costs = Costs::read(Segments::create().unwrap().0.shared);
        let first = Snapshot { ticks: 0, monotonic_ns: 0, realtime_ns: 0, width: 0 };
        let second = Snapshot { ticks: 2_000, monotonic_ns: 1_000, ..first };
        let rate = Rate::between(&first, &second).unwrap();
        for _ in 0..2 {
            CostsFile::create(&folder.join("first"), &costs, rate, 0).unwrap();
        }
        assert!(folder.join("first").is_symlink() && folder.join("second").is_symlink());
        let names: Vec<_> = folder.join("there").read_dir().unwrap().collect();
        assert_eq!(names.len(), 1);
        assert!(folder.join("there/costs").metadata().unwrap().len() > 0);
        std::fs::remove_dir_all(folder).unwrap();
    }
}
