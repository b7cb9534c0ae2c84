// SPDX-License-Identifier: Apache-2.0
//! How much memory this process can have.

use std::fs;
use std::path::{Path, PathBuf};

/// Where control groups are mounted, and the file with the limit of each: version 2, and 1.
const GROUPS: [(&str, &str, &str); 2] = [
    ("", "/sys/fs/cgroup", "memory.max"),
    ("memory", "/sys/fs/cgroup/memory", "memory.limit_in_bytes"),
];

/// Bytes of memory of this machine, or of the control group of this process if that has less: a
/// process that takes more is killed.
pub fn most() -> u64 {
    // SAFETY: no memory is touched.
    let [pages, size] =
        [libc::_SC_PHYS_PAGES, libc::_SC_PAGESIZE].map(|what| unsafe { libc::sysconf(what) });
    let machine = pages.max(0) as u64 * size.max(0) as u64;
    let groups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    limits(&groups, |file| fs::read_to_string(file).ok()).fold(machine, u64::min)
}

/// Those of the groups in cgroups(7)'s `/proc/PID/cgroup`, and of all above them. `max` is none.
fn limits(groups: &str, read: impl Fn(&Path) -> Option<String>) -> impl Iterator<Item = u64> {
    let files = groups.lines().flat_map(|line| {
        let mut fields = line.splitn(3, ':').skip(1);
        let (kinds, group) = (fields.next().unwrap_or_default(), fields.next().unwrap_or_default());
        let of = |(kind, ..): &(&str, _, _)| kinds.split(',').any(|listed| listed == *kind);
        let group = Path::new(group.trim_start_matches('/'));
        GROUPS.iter().filter(move |entry| of(entry)).flat_map(move |(_, root, file)| {
            let folders = group.ancestors();
            folders.map(move |folder| PathBuf::from(root).join(folder).join(file))
        })
    });
    files.filter_map(move |file| read(&file)?.trim().parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(groups: &str) -> Vec<u64> {
        let read = |file: &Path| {
            Some(match file.to_str()? {
                "/sys/fs/cgroup/memory.max" => "max\n".to_owned(),
                "/sys/fs/cgroup/a.slice/memory.max" => "300\n".to_owned(),
                "/sys/fs/cgroup/a.slice/b:c/memory.max" => "500\n".to_owned(),
                "/sys/fs/cgroup/memory/memory.limit_in_bytes" => i64::MAX.to_string(),
                "/sys/fs/cgroup/memory/x/memory.limit_in_bytes" => "700".to_owned(),
                _ => return None,
            })
        };
        limits(groups, read).collect()
    }

    #[test]
    fn limits_of_a_control_group_and_of_those_above_it() {
        assert_eq!(all("0::/a.slice/b:c\n"), [500, 300]);
        assert_eq!(all("4:memory:/x\n1:cpu:/y\n0::/\n"), [700, i64::MAX as u64]);
        assert_eq!(all("4:cpu,memory:/\n"), [i64::MAX as u64]);
        assert_eq!(all("nothing\n\n"), [0; 0]);
    }

    #[test]
    fn this_process_can_have_memory() {
        assert!(most() > 1 << 20);
    }
}
