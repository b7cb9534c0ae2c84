// SPDX-License-Identifier: Apache-2.0
use crate::reader::log::Log;
use crate::reader::spans::Id;
use std::hash::{DefaultHasher, Hash, Hasher};

/// Numbers of traces and spans: the same whenever a span is exported, of whichever file.
pub struct TraceIds {
    /// A number for each process.
    processes: Vec<u64>,
}

impl TraceIds {
    pub fn of(log: &Log) -> Self {
        let processes = log.processes().iter();
        let named = processes.map(|info| (&info.host, info.pid, info.start, info.began_ticks));
        Self { processes: named.map(number).collect() }
    }

    /// Of the trace that this outermost span begins.
    pub fn trace(&self, root: Id) -> String {
        format!("{:016x}{}", self.processes[root.process], self.span(root))
    }

    pub fn span(&self, Id { process, ring, ticks, nth }: Id) -> String {
        format!("{:016x}", number((self.processes[process], ring, ticks, nth)))
    }
}

fn number(of: impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    of.hash(&mut hasher);
    // One of zeros is none.
    hasher.finish().max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_one_and_the_same_span_has_the_same_ids() {
        let ids = TraceIds { processes: vec![7, 8] };
        let root = Id { process: 0, ring: 1, ticks: 10, nth: 0 };
        let others = [
            Id { process: 1, ..root },
            Id { ring: 2, ..root },
            Id { ticks: 11, ..root },
            Id { nth: 1, ..root },
        ];
        for other in others {
            assert_ne!(ids.span(other), ids.span(root));
            assert_ne!(ids.trace(other), ids.trace(root));
        }
        let alone = TraceIds { processes: vec![7] };
        assert_eq!((alone.span(root), alone.trace(root)), (ids.span(root), ids.trace(root)));
        assert_eq!((ids.span(root).len(), ids.trace(root).len()), (16, 32));
    }
}
