// SPDX-License-Identifier: Apache-2.0
//! The programs that have sockets.

use std::collections::HashMap;
use std::fs;
use std::io;
use tare_command::processes;

#[derive(Clone, Default)]
pub struct Owner {
    pub pid: Option<u32>,
    pub program: String,
}

impl Owner {
    pub fn is_known(&self) -> bool {
        !self.program.is_empty()
    }
}

/// Who has the sockets, by inode, from the descriptors of all processes that may be read. Returns
/// whether some may not.
pub fn find(owners: &mut HashMap<u32, Owner>) -> bool {
    let mut has_hidden = false;
    for pid in processes::all() {
        let mut program = None;
        let descriptors = processes::descriptors(pid);
        has_hidden |= descriptors
            .as_ref()
            .is_err_and(|error| error.kind() == io::ErrorKind::PermissionDenied);
        for path in descriptors.into_iter().flatten() {
            let Ok(target) = fs::read_link(&path) else { continue };
            let Some(inode) = socket_inode(&target.to_string_lossy()) else { continue };
            let program = program.get_or_insert_with(|| {
                // Of the process, or of the thread that has the descriptors.
                let folder = path.ancestors().nth(2).unwrap_or(&path);
                let path = fs::read_link(folder.join("exe")).unwrap_or_default();
                let name = path.file_name().unwrap_or_default().to_string_lossy();
                name.trim_end_matches(" (deleted)").to_owned()
            });
            owners.insert(inode, Owner { pid: Some(pid), program: program.clone() });
        }
    }
    has_hidden
}

fn socket_inode(target: &str) -> Option<u32> {
    target.strip_prefix("socket:[")?.strip_suffix(']')?.parse().ok()
}
