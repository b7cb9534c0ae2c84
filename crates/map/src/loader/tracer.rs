// SPDX-License-Identifier: Apache-2.0
//! Starts tracing, finds what is there already, and reads edges.

use crate::clock::{Clock, process_seconds};
use crate::edges::direction::confirm;
use crate::edges::edge::{Completeness, Cost, Edge, Events, Method, Reading, Runs, sort};
use crate::edges::links::Links;
use crate::edges::missing::{Missing, Part};
use crate::edges::resolve::Resolver;
use crate::layout::{EdgeCounts, EdgeKey, LOST_OPEN};
use crate::loader::bpf_calls;
use crate::loader::connections::Connections;
use crate::loader::double_buffer::MapBuffer;
use crate::loader::eviction::Eviction;
use crate::loader::losses;
use crate::loader::maps::{self, Edges, Errors};
use crate::loader::options::Options;
use crate::loader::programs::{self, map_fd};
use crate::loader::unseen_ends::{OpenByEdge, missing};
use crate::loader::user_space_counts::{EdgeTotals, Stream};
use crate::{Error, failed};
use aya::maps::RingBuf;
use aya::sys::{Stats, enable_stats};
use aya::{Btf, Ebpf};
use std::collections::{HashMap, HashSet};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

/// Reading the counters of open connections takes at most this part of a core.
const SHARE_OF_A_CORE: u32 = 200;

/// Ends that no program saw are looked for at most so often.
const BETWEEN_COUNTS: Duration = Duration::from_secs(10);

/// BPF programs that are attached, until it is dropped.
pub struct Tracer {
    method: Method,
    events: Events,
    kernel: Ebpf,
    /// What was counted outside of the kernel.
    totals: EdgeTotals,
    stream: Option<Stream>,
    /// The maps that programs count in.
    counting: MapBuffer,
    eviction: Eviction,
    connections: Connections,
    /// The network namespaces whose open connections were read last; all if there is no set.
    drained: Option<HashSet<u32>>,
    /// When open connections may be read again.
    next_drain: Instant,
    /// When open connections may be counted by edge again.
    next_count: Instant,
    resolver: Resolver,
    links: Links,
    /// Names of the programs that see events.
    attached: &'static [&'static str],
    /// The kernel counts while it is open.
    _statistics: Option<OwnedFd>,
}

impl Tracer {
    /// Needs root (or CAP_BPF, CAP_PERFMON and CAP_NET_ADMIN), and a kernel with BTF; for UDP, Linux 6.3.
    pub fn start(options: &Options) -> Result<Self, Error> {
        if let Some(reason) = programs::obstacle() {
            return Err(Error(reason.to_owned()));
        }
        let btf = Btf::from_sys_fs().map_err(|error| failed("/sys/kernel/btf/vmlinux", &error))?;
        let statistics = options
            .statistics
            .then(|| enable_stats(Stats::RunTime))
            .transpose()
            .map_err(|error| failed("statistics of BPF programs", &error))?;
        let mut kernel = programs::load(options, &btf)?;
        let stream = (options.method == Method::Stream)
            .then(|| {
                let map = kernel.take_map("events");
                let map = map.ok_or_else(|| Error::new("events", "not in the object"))?;
                let ring = RingBuf::try_from(map).map_err(|error| failed("events", &error))?;
                Ok(Stream::new(ring))
            })
            .transpose()?;
        let has_ends = options.method != Method::Stream || options.events == Events::All;
        let connections = Connections::new(&mut kernel, &btf)?;
        let resolver = Resolver::new(options.method, options.events);
        for name in ["find_listeners", "find_connections"] {
            programs::load_iterator(&mut kernel, &btf, name, "task_file")?;
        }
        // Before, so that every connection that is accepted from now on has an owner; and after, for
        // those that begin to listen meanwhile.
        programs::find(&kernel, "find_listeners")?;
        let attached = programs::attach(&mut kernel, &btf, resolver.cgroups.root())?;
        for name in ["find_listeners", "find_connections"] {
            programs::find(&kernel, name)?;
        }
        Ok(Self {
            method: options.method,
            events: options.events,
            totals: EdgeTotals::new(options.max_edges, has_ends),
            stream,
            counting: MapBuffer::First,
            eviction: Eviction::new(options.max_edges),
            connections,
            drained: None,
            next_drain: Instant::now(),
            next_count: Instant::now() + BETWEEN_COUNTS,
            resolver,
            links: Links::new(),
            attached,
            _statistics: statistics,
            kernel,
        })
    }

    /// Whether messages of UDP are counted: the kernel has their events since Linux 6.3.
    pub fn has_udp(&self) -> bool {
        self.attached.len() > programs::TCP
    }

    /// Readable when [`Tracer::take_events`] should be called; none if the method sends no events.
    pub fn events_fd(&self) -> Option<BorrowedFd<'_>> {
        self.stream.as_ref().map(Stream::fd)
    }

    /// Counts the events that have arrived.
    pub fn take_events(&mut self) {
        if let Some(stream) = &mut self.stream {
            stream.take(&mut self.totals);
        }
    }

    /// Makes room for new edges by adding idle edges to the edge `other`, if there is need. Readings do
    /// it, too; between them, it should be called about once a second.
    pub fn evict_idle_edges(&mut self) -> Result<(), Error> {
        if self.method == Method::Bundle {
            self.eviction.run(&mut self.kernel, &mut self.totals)?;
        }
        Ok(())
    }

    /// All edges since the start. Bytes of connections that are open are read at most so often that
    /// it takes 0.5 % of a core; [`Tracer::read_now`] always reads them.
    pub fn read(&mut self) -> Result<Reading, Error> {
        self.evict_idle_edges()?;
        if self.method == Method::Stream || Instant::now() < self.next_drain {
            return self.read_counts();
        }
        let may_count = Instant::now() >= self.next_count;
        self.read_connections(may_count)
    }

    /// All edges since the start, with everything that was sent until now.
    pub fn read_now(&mut self) -> Result<Reading, Error> {
        self.evict_idle_edges()?;
        if self.method == Method::Stream {
            return self.read_counts();
        }
        self.read_connections(true)
    }

    fn read_counts(&mut self) -> Result<Reading, Error> {
        let errors = self.errors()?;
        let edges = self.counts()?;
        let mut reading = self.collect(errors, edges)?;
        if self.method != Method::Stream && reading.edges.iter().any(Edge::has_open_connections) {
            let reason = "bytes since an earlier reading of open connections";
            reading.missing.push(Missing::new(Part::OpenBytes, reason));
        }
        Ok(reading)
    }

    /// Brings the edges of open connections up to date, and looks for ends that no program saw if
    /// fewer connections are open than edges have.
    fn read_connections(&mut self, may_count: bool) -> Result<Reading, Error> {
        let begin = Instant::now();
        maps::set_open(&mut self.kernel, 0)?;
        self.drained = self.connections.drain()?;
        self.next_drain = begin + begin.elapsed() * SHARE_OF_A_CORE;
        let errors = self.errors()?;
        let mut edges = self.counts()?;
        let active: i64 = edges.iter().map(|(_, counts)| counts.active()).sum();
        if may_count
            && active - self.totals.unseen_ends.total() as i64 > maps::open(&self.kernel)? as i64
        {
            edges = self.find_unseen_ends(edges)?;
            self.next_count = Instant::now() + BETWEEN_COUNTS;
        }
        let mut reading = self.collect(errors, edges)?;
        let is_skipped = |edge: &Edge| {
            edge.has_open_connections()
                && self.drained.as_ref().is_some_and(|seen| !seen.contains(&edge.netns))
        };
        if reading.edges.iter().any(is_skipped) {
            let reason = "bytes of open connections in namespaces that cannot be entered";
            reading.missing.push(Missing::new(Part::OpenBytes, reason));
        }
        Ok(reading)
    }

    /// Returns the counts of edges afterwards.
    fn find_unseen_ends(&mut self, before: Edges) -> Result<Edges, Error> {
        let between = self.open_by_edge()?;
        let middle = self.counts()?;
        let first = missing(&before, &between, &middle);
        let between = self.open_by_edge()?;
        let after = self.counts()?;
        self.totals.unseen_ends.find([&first, &missing(&middle, &between, &after)]);
        Ok(after)
    }

    /// Open connections that have a record, after all programs that were running have ended; those
    /// that begin meanwhile have ended when it returns.
    fn open_by_edge(&self) -> Result<OpenByEdge, Error> {
        let wait =
            || bpf_calls::wait_for_programs().map_err(|error| Error::new("membarrier", error));
        let lost = losses::read(&self.kernel)?[LOST_OPEN];
        wait()?;
        let mut namespaces = self.connections.count_open()?;
        wait()?;
        if losses::read(&self.kernel)?[LOST_OPEN] != lost {
            // Edges that there was no room for would seem to have no open connection.
            namespaces = Some(HashSet::new());
        }
        let counted =
            bpf_calls::take_elements(map_fd(&self.kernel, "open_by_edge")?, (EdgeKey::OTHER, 0))
                .map_err(|error| Error::new("the map of open connections", error))?;
        let mut numbers = HashMap::new();
        for (key, count) in counted {
            // As the totals have it.
            let key =
                if self.method == Method::Aggregate { self.totals.place_of(&key) } else { key };
            *numbers.entry(key).or_default() += count;
        }
        Ok(OpenByEdge { numbers, namespaces })
    }

    /// Adds the flows since the last call to the totals: the kernel counts in the other maps
    /// meanwhile.
    fn take_flows(&mut self) -> Result<(), Error> {
        let full = self.counting;
        self.counting = full.other();
        maps::count_in(&mut self.kernel, self.counting)?;
        let (mut flows, errors) = maps::take(&mut self.kernel, full)?;
        for (key, _) in &mut flows {
            key.client_port = 0;
        }
        self.totals.add_all(flows, errors);
        Ok(())
    }

    /// Those that are in the kernel. To be read before the edges: an edge exists before its errors are
    /// counted.
    fn errors(&self) -> Result<Errors, Error> {
        match self.method {
            Method::Bundle | Method::Poll => maps::read_errors(&self.kernel, MapBuffer::First),
            Method::Aggregate | Method::Stream => Ok(Errors::new()),
        }
    }

    /// What was counted for each edge since the start.
    fn counts(&mut self) -> Result<Edges, Error> {
        match self.method {
            Method::Bundle | Method::Poll => {
                let mut edges = maps::read_edges(&self.kernel, MapBuffer::First)?;
                let mut kept: HashMap<_, _> = self.totals.edges().into_iter().collect();
                kept.retain(|_, counts| *counts != EdgeCounts::EMPTY);
                // Most readings are large, and nothing was evicted before.
                if kept.is_empty() {
                    return Ok(edges);
                }
                for (key, counts) in &mut edges {
                    if let Some(more) = kept.remove(key) {
                        counts.add(&more);
                    }
                }
                edges.extend(kept);
                Ok(edges)
            }
            Method::Aggregate => {
                self.take_flows()?;
                Ok(self.totals.edges())
            }
            Method::Stream => {
                self.take_events();
                Ok(self.totals.edges())
            }
        }
    }

    fn collect(&mut self, counted: Errors, edges: Edges) -> Result<Reading, Error> {
        let mut errors = HashMap::<EdgeKey, Vec<(u32, u32, u64)>>::new();
        for (key, count) in counted.into_iter().chain(self.totals.errors()) {
            errors.entry(key.edge).or_default().push((key.kind, key.number, count));
        }
        let is_bundle = self.method == Method::Bundle;
        let surplus = is_bundle.then(|| self.eviction.surplus(&edges, &self.totals));
        let surplus: HashSet<_> = surplus.into_iter().flatten().collect();
        let clock = Clock::now();
        let mut found = Vec::with_capacity(edges.len());
        let mut other = EdgeCounts::EMPTY;
        let mut add = |key: &EdgeKey, counts: &EdgeCounts, errors: &[(u32, u32, u64)]| {
            if !counts.is_empty() || !errors.is_empty() {
                found.push(self.resolver.edge(&self.kernel, key, counts, errors, &clock));
            }
        };
        for (key, mut counts) in edges {
            counts.closed = counts.closed.wrapping_add(self.totals.unseen_ends.of(&key));
            if key == EdgeKey::OTHER || surplus.contains(&key) {
                other.add(&counts);
            } else {
                add(&key, &counts, &errors.remove(&key).unwrap_or_default());
            }
        }
        // With those of edges that there was no room for.
        let rest: Vec<_> = errors.into_values().flatten().collect();
        add(&EdgeKey::OTHER, &other, &rest);
        self.links.mark(&mut found);
        confirm(&mut found);
        sort(&mut found);
        let mut completeness = self.completeness()?;
        completeness.removed_edges += surplus.len() as u64;
        Ok(Reading { edges: found, completeness, missing: self.missing() })
    }

    /// What neither this kernel nor the method show.
    fn missing(&self) -> Vec<Missing> {
        let mut missing = Vec::new();
        if !self.has_udp() {
            let reason = "UDP (the kernel has no events for it before Linux 6.3)";
            missing.push(Missing::new(Part::Udp, reason));
        } else if self.resolver.cgroups.root().is_none() {
            let reason = "peers of UDP sockets that are not connected (cgroup2 is not mounted)";
            missing.push(Missing::new(Part::UdpPeers, reason));
        }
        if self.method == Method::Stream && self.events != Events::All {
            let reason = "bytes and ends of TCP connections (--events all adds them)";
            missing.push(Missing::new(Part::TcpBytes, reason));
        }
        missing
    }

    /// What tracing cost; run times only with [`Options::statistics`].
    pub fn cost(&self) -> Cost {
        let runs = self.kernel.programs().filter_map(|(name, program)| {
            let runs = bpf_calls::program_runs(program.fd().ok()?.as_fd()).ok()?;
            Some((name.to_owned(), Runs { runs: runs.count, nanoseconds: runs.nanoseconds }))
        });
        Cost { cpu_seconds: process_seconds(), programs: runs.collect() }
    }

    fn completeness(&self) -> Result<Completeness, Error> {
        let mut counted = losses::completeness(&self.kernel, self.attached)?;
        counted.folded += self.totals.folded;
        counted.removed_edges = self.totals.removed;
        counted.unseen_ends = self.totals.unseen_ends.total();
        Ok(counted)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use aya::programs::BtfTracePoint;
    use std::net::{TcpListener, TcpStream};

    fn edges(reading: &Reading, port: u16) -> Vec<&Edge> {
        reading.edges.iter().filter(|edge| edge.port == port).collect()
    }

    #[test]
    fn connections_whose_end_no_program_saw_are_counted_as_closed() {
        if programs::obstacle().is_some() {
            return;
        }
        let cases =
            [Method::Bundle, Method::Aggregate].map(|method| [(method, false), (method, true)]);
        for (method, looks_at_sockets) in cases.into_iter().flatten() {
            let mut tracer = Tracer::start(&Options { method, ..Options::default() }).unwrap();
            if looks_at_sockets {
                tracer.connections.look_at_sockets(&mut tracer.kernel);
            }
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            let address = listener.local_addr().unwrap();
            let pair = || (TcpStream::connect(address).unwrap(), listener.accept().unwrap());
            let (ending, staying) = (pair(), pair());
            let reading = tracer.read_now().unwrap();
            let found = edges(&reading, address.port());
            assert_eq!(found.iter().map(|edge| edge.active).collect::<Vec<_>>(), [2, 2]);
            for name in std::mem::take(&mut tracer.attached) {
                let program = tracer.kernel.program_mut(name).unwrap();
                let program: &mut BtfTracePoint = program.try_into().unwrap();
                program.unload().unwrap();
            }
            drop(ending);
            // The kernel frees the sockets later.
            let deadline = Instant::now() + Duration::from_secs(60);
            loop {
                assert!(Instant::now() < deadline, "the ends were not found");
                let reading = tracer.read_now().unwrap();
                let found = edges(&reading, address.port());
                let ends: Vec<_> = found.iter().map(|edge| (edge.active, edge.closed)).collect();
                if ends == [(1, 1), (1, 1)] {
                    assert!(reading.completeness.unseen_ends >= 2);
                    break;
                }
                assert!(found.iter().all(|edge| (1..=2).contains(&edge.active)));
            }
            drop(staying);
        }
    }
}
