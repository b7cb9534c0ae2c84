// SPDX-License-Identifier: Apache-2.0
use crate::log::Log;
use std::hash::{DefaultHasher, Hash, Hasher};

/// Numbers of traces and spans: the same whenever a file is exported, others in other files.
pub struct Ids {
    /// A number for each process.
    processes: Vec<u64>,
}

impl Ids {
    pub fn of(log: &Log) -> Self {
        let processes = log.processes().iter().map(|info| {
            let mut hasher = DefaultHasher::new();
            (&info.host, info.pid, info.start, info.began_ticks).hash(&mut hasher);
            // A trace of zeros is none.
            hasher.finish().max(1)
        });
        Self { processes: processes.collect() }
    }

    /// Of the trace that this outermost span begins.
    pub fn trace(&self, process: usize, root: u64) -> String {
        format!("{:016x}{root:016x}", self.processes[process])
    }

    pub fn span(&self, id: u64) -> String {
        format!("{id:016x}")
    }
}
