// SPDX-License-Identifier: Apache-2.0
//! Programs that look at every open connection: over the records in the storage of sockets, or, where
//! the kernel refuses that, over the TCP sockets of each network namespace.

use crate::Error;
use crate::loader::bpf_calls::Iterator;
use crate::loader::programs::{load_iterator, map_fd, program_fd, refuses_iterator};
use crate::namespaces::Namespaces;
use aya::{Btf, Ebpf};
use std::collections::HashSet;
use std::os::fd::BorrowedFd;

const OF_RECORDS: &str = "bpf_sk_storage_map";
const OF_SOCKETS: &str = "tcp";

/// Both programs, ready to run.
pub struct Connections {
    drain: Iterator,
    count_open: Iterator,
    /// Where sockets are looked at.
    namespaces: Option<Namespaces>,
}

impl Connections {
    pub fn new(kernel: &mut Ebpf, btf: &Btf) -> Result<Self, Error> {
        if refuses_iterator(kernel, btf, "drain", OF_RECORDS)? {
            return Self::of_sockets(kernel, btf);
        }
        load_iterator(kernel, btf, "count_open", OF_RECORDS)?;
        let records = map_fd(kernel, "connections")?;
        let drain = iterator(kernel, "drain", Some(records))?;
        let count_open = iterator(kernel, "count_open", Some(records))?;
        Ok(Self { drain, count_open, namespaces: None })
    }

    fn of_sockets(kernel: &mut Ebpf, btf: &Btf) -> Result<Self, Error> {
        for name in ["drain_namespace", "count_open_in_namespace"] {
            load_iterator(kernel, btf, name, OF_SOCKETS)?;
        }
        let drain = iterator(kernel, "drain_namespace", None)?;
        let count_open = iterator(kernel, "count_open_in_namespace", None)?;
        Ok(Self { drain, count_open, namespaces: Some(Namespaces::new()?) })
    }

    /// Brings the edges of open connections up to date. Returns the network namespaces that were
    /// looked at; all if there is no set.
    pub fn drain(&self) -> Result<Option<HashSet<u32>>, Error> {
        self.run(&self.drain)
    }

    /// Counts open connections by edge. Returns the same.
    pub fn count_open(&self) -> Result<Option<HashSet<u32>>, Error> {
        self.run(&self.count_open)
    }

    /// As where the kernel refuses iterators over records.
    #[cfg(test)]
    pub fn look_at_sockets(&mut self, kernel: &mut Ebpf) {
        if self.namespaces.is_none() {
            *self = Self::of_sockets(kernel, &Btf::from_sys_fs().unwrap()).unwrap();
        }
    }

    fn run(&self, iterator: &Iterator) -> Result<Option<HashSet<u32>>, Error> {
        let failed = |error| Error::new("open connections were not read", error);
        let Some(namespaces) = &self.namespaces else {
            iterator.run().map_err(failed)?;
            return Ok(None);
        };
        let mut seen = HashSet::new();
        for (netns, path) in namespaces.all() {
            match namespaces.inside(path.as_ref(), || iterator.run()) {
                Ok(()) => _ = seen.insert(netns),
                // Its last process has ended, or it cannot be entered.
                Err(_) if path.is_some() => {}
                Err(error) => return Err(failed(error)),
            }
        }
        Ok(Some(seen))
    }
}

fn iterator(kernel: &Ebpf, name: &str, map: Option<BorrowedFd<'_>>) -> Result<Iterator, Error> {
    Iterator::new(program_fd(kernel, name)?, map)
        .map_err(|error| Error::new("the iterator of connections", error))
}
