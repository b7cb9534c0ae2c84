// SPDX-License-Identifier: Apache-2.0
//! Names of services and cgroups.

use std::collections::HashMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Names of ports from /etc/services.
pub struct Services(HashMap<(u16, bool), String>);

impl Services {
    pub fn read() -> Self {
        Self::parse(&fs::read_to_string("/etc/services").unwrap_or_default())
    }

    fn parse(text: &str) -> Self {
        let mut names = HashMap::new();
        for line in text.lines() {
            let mut words = line.split('#').next().unwrap_or_default().split_whitespace();
            let (Some(name), Some(port)) = (words.next(), words.next()) else { continue };
            let Some((port, protocol)) = port.split_once('/') else { continue };
            if let (Ok(port), "tcp" | "udp") = (port.parse(), protocol) {
                names.entry((port, protocol == "udp")).or_insert_with(|| name.to_owned());
            }
        }
        Self(names)
    }

    pub fn name(&self, port: u16, is_udp: bool) -> Option<&String> {
        self.0.get(&(port, is_udp))
    }
}

/// Paths of cgroups by their number, which is the inode of their folder.
pub struct Cgroups {
    root: Option<PathBuf>,
    paths: HashMap<u64, String>,
}

impl Cgroups {
    pub fn new() -> Self {
        Self { root: mount_point(), paths: HashMap::new() }
    }

    /// Where cgroup2 is mounted.
    pub fn root(&self) -> Option<&Path> {
        self.root.as_deref()
    }

    /// The path below the mount point, or the number where the cgroup has been removed.
    pub fn path(&mut self, number: u64) -> String {
        if !self.paths.contains_key(&number)
            && let Some(root) = self.root.clone()
        {
            self.look(&root, "/");
        }
        self.paths.entry(number).or_insert_with(|| number.to_string()).clone()
    }

    fn look(&mut self, folder: &Path, name: &str) {
        if let Ok(status) = folder.metadata() {
            self.paths.insert(status.ino(), name.to_owned());
        }
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                let below = format!(
                    "{}/{}",
                    name.trim_end_matches('/'),
                    entry.file_name().to_string_lossy()
                );
                self.look(&entry.path(), &below);
            }
        }
    }
}

fn mount_point() -> Option<PathBuf> {
    let mounts = fs::read_to_string("/proc/self/mounts").ok()?;
    mounts.lines().find_map(|line| {
        let mut words = line.split(' ');
        let (place, kind) = (words.nth(1)?, words.next()?);
        (kind == "cgroup2").then(|| PathBuf::from(place))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_name_of_a_port_is_used() {
        let services = Services::parse(
            "# a comment\nhttp 80/tcp www # web\nalso 80/tcp\ndomain 53/udp\nbad line\n",
        );
        assert_eq!(services.name(80, false).unwrap(), "http");
        assert_eq!(services.name(80, true), None);
        assert_eq!(services.name(53, true).unwrap(), "domain");
    }
}
