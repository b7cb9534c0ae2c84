// SPDX-License-Identifier: Apache-2.0
//! Connections whose bytes `tare link` carries over shared memory: the kernel's sockets do not count
//! those.

use crate::edges::edge::{Edge, Protocol, Role};
use crate::layout::address;
use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::net::IpAddr;
use std::os::fd::AsRawFd;
use std::time::{Duration, Instant};
use tare_command::segments;
use tare_link_segment::{Counter, Statistics, VERSION};
use tare_shm::{Access, Segment, peer, syscall};

/// Programs are looked up again after this time: a process may have executed another one.
const FORGOTTEN: Duration = Duration::from_secs(60);

/// Programs that run under `tare link`, and edges that had links.
pub struct Links {
    programs: HashMap<u32, Option<u64>>,
    /// By the inode of their memory: programs of one `tare link` share it.
    runs: HashMap<u64, Segment>,
    begun: Instant,
    /// Edges that had a link at an earlier reading.
    seen: HashSet<(u32, Flow)>,
}

/// What an edge and a link have in common: addresses, port of the server, and role.
type Flow = (IpAddr, IpAddr, u16, Role);

impl Links {
    pub fn new() -> Self {
        Self {
            programs: HashMap::new(),
            runs: HashMap::new(),
            begun: Instant::now(),
            seen: HashSet::new(),
        }
    }

    /// Says of each TCP edge whether its connections are linked.
    pub fn mark(&mut self, edges: &mut [Edge]) {
        if self.begun.elapsed() > FORGOTTEN {
            self.forget();
        }
        let mut flows = HashMap::new();
        for edge in edges.iter_mut().filter(|edge| edge.protocol == Protocol::Tcp) {
            let Some(pid) = edge.pid else { continue };
            let Some(run) = self.run_of(pid) else { continue };
            let (listed, is_whole) = flows.entry(run).or_insert_with(|| self.listed(run));
            let flow = (edge.local, edge.peer, edge.port, edge.role);
            if listed.contains(&flow) {
                self.seen.insert((pid, flow));
            }
            edge.linked = if self.seen.contains(&(pid, flow)) {
                Some(true)
            } else {
                is_whole.then_some(false)
            };
        }
    }

    /// The flows of a run's links, and whether those are all that it ever had.
    fn listed(&self, run: u64) -> (HashSet<Flow>, bool) {
        // SAFETY: atomics only, and nothing is written.
        let statistics = self.runs.get(&run).and_then(|run| unsafe { run.at::<Statistics>(0) });
        let Some(statistics) = statistics else { return (HashSet::new(), false) };
        let mut flows = HashSet::new();
        let mut count = 0;
        for link in statistics.listing().all() {
            let [local, remote] = link.ends.map(|end| address(end.address));
            let [own, other] = link.ends.map(|end| end.port);
            flows.insert((local, remote, other, Role::Client));
            flows.insert((local, remote, own, Role::Server));
            count += 1;
        }
        (flows, statistics.get(Counter::Links) == count)
    }

    fn run_of(&mut self, pid: u32) -> Option<u64> {
        if let Some(known) = self.programs.get(&pid) {
            return *known;
        }
        let found = self.find(pid);
        self.programs.insert(pid, found);
        found
    }

    /// The run of a process, by the descriptor that it inherited.
    fn find(&mut self, pid: u32) -> Option<u64> {
        let own = syscall::geteuid();
        let is_owner = move |user: u32| own == 0 || peer::is_own(user);
        // Of one `tare link` inside of another, the inner one was started later.
        let found = segments::of(pid, Statistics::NAME, Access::ReadOnly, is_owner).last()?;
        if let Entry::Vacant(place) = self.runs.entry(found.inode) {
            let (fd, kind) = (found.fd.as_raw_fd(), Statistics::KIND);
            place.insert(Segment::open(fd, kind, VERSION, Access::ReadOnly).ok()?);
        }
        Some(found.inode)
    }

    fn forget(&mut self) {
        self.programs.clear();
        for (_, segment) in self.runs.drain() {
            // SAFETY: nothing of it was given out.
            unsafe { segment.unmap() };
        }
        self.begun = Instant::now();
    }
}

impl Drop for Links {
    fn drop(&mut self) {
        self.forget();
    }
}
