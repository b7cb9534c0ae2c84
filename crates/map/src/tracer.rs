// SPDX-License-Identifier: Apache-2.0
//! Starts tracing, finds what is there already, and reads edges.

use crate::clock::{Clock, process_seconds};
use crate::direction::confirm;
use crate::edge::{Completeness, Cost, Events, Method, Reading, Runs, sort};
use crate::kernel::{self, Iterator};
use crate::layout::{EdgeCounts, EdgeKey, ErrorKey, LOSSES};
use crate::links::Links;
use crate::outside::{Stream, Totals};
use crate::programs::{self, add_other, map_fd, program_fd};
use crate::resolve::Resolver;
use crate::{Error, failed};
use aya::maps::{Array, PerCpuArray, RingBuf};
use aya::sys::{Stats, enable_stats};
use aya::{Btf, Ebpf};
use std::collections::HashMap;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Instant;

/// Reading the counters of open connections takes at most this part of a core.
const SHARE_OF_A_CORE: u32 = 200;

/// How to trace.
#[derive(Clone, Debug)]
pub struct Options {
    /// Not [`Method::Poll`], which [`crate::Poller`] has.
    pub method: Method,
    /// Only for [`Method::Stream`].
    pub events: Events,
    /// Bytes for events on their way to [`Method::Stream`]: a power of two.
    pub buffer: u32,
    /// Edges that there is room for; the rest is folded into one edge `other`.
    pub max_edges: u32,
    /// Count run time and number of runs of the BPF programs: all of the machine, while it lasts.
    pub statistics: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            method: Method::Bundle,
            events: Events::Setup,
            buffer: 16 << 20,
            max_edges: 32_768,
            statistics: false,
        }
    }
}

/// BPF programs that are attached, until it is dropped.
pub struct Tracer {
    method: Method,
    kernel: Ebpf,
    /// What was counted outside of the kernel.
    totals: Totals,
    stream: Option<Stream>,
    uses_second: bool,
    drain: Iterator,
    /// When open connections may be read again.
    next_drain: Instant,
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
        let drain = {
            programs::load_iterator(&mut kernel, &btf, "drain", "bpf_sk_storage_map")?;
            let connections = map_fd(&kernel, "connections")?;
            let program = program_fd(&kernel, "drain")?;
            Iterator::new(program, Some(connections))
                .map_err(|error| Error::new("the iterator of connections", error))?
        };
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
            totals: Totals::new(options.max_edges),
            stream,
            uses_second: false,
            drain,
            next_drain: Instant::now(),
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

    /// All edges since the start. Bytes of connections that are open are read at most so often that
    /// it takes 0.5 % of a core; [`Tracer::read_now`] always reads them.
    pub fn read(&mut self) -> Result<Reading, Error> {
        if Instant::now() >= self.next_drain {
            return self.read_now();
        }
        self.collect()
    }

    /// All edges since the start, with everything that was sent until now.
    pub fn read_now(&mut self) -> Result<Reading, Error> {
        if self.method == Method::Stream {
            return self.collect();
        }
        let begin = Instant::now();
        self.drain.run().map_err(|error| Error::new("open connections were not read", error))?;
        self.next_drain = begin + begin.elapsed() * SHARE_OF_A_CORE;
        self.collect()
    }

    /// Adds the flows since the last call to the totals: the kernel counts in the other map
    /// meanwhile.
    fn take_flows(&mut self) -> Result<(), Error> {
        let names = ["edges", "second_edges"];
        let full = names[usize::from(self.uses_second)];
        self.uses_second = !self.uses_second;
        let switch = self.kernel.map_mut("uses_second").and_then(|map| Array::try_from(map).ok());
        let mut switch: Array<_, u32> =
            switch.ok_or_else(|| Error::new("uses_second", "not in the object"))?;
        switch
            .set(0, u32::from(self.uses_second), 0)
            .map_err(|error| failed("uses_second", &error))?;
        kernel::wait_for_programs().map_err(|error| Error::new("membarrier", error))?;
        let empty = (EdgeKey::OTHER, EdgeCounts::EMPTY);
        let flows = kernel::take_elements(map_fd(&self.kernel, full)?, empty)
            .map_err(|error| Error::new("the map of flows", error))?;
        add_other(&mut self.kernel, full)?;
        for (key, counts) in flows {
            if !counts.is_empty() || counts.last_ns != 0 {
                self.totals.add(&EdgeKey { client_port: 0, ..key }, &counts);
            }
        }
        Ok(())
    }

    fn collect(&mut self) -> Result<Reading, Error> {
        // Before the edges: an edge exists before its errors are counted.
        let empty = ErrorKey { edge: EdgeKey::OTHER, kind: 0, number: 0 };
        let counted = kernel::elements(map_fd(&self.kernel, "errors")?, (empty, 0_u64))
            .map_err(|error| Error::new("the map of errors", error))?;
        let edges = match self.method {
            Method::Bundle | Method::Poll => {
                let empty = (EdgeKey::OTHER, EdgeCounts::EMPTY);
                kernel::elements(map_fd(&self.kernel, "edges")?, empty)
                    .map_err(|error| Error::new("the map of edges", error))?
            }
            Method::Aggregate => {
                self.take_flows()?;
                self.totals.edges()
            }
            Method::Stream => {
                self.take_events();
                self.totals.edges()
            }
        };
        let mut errors = HashMap::<EdgeKey, Vec<(u32, u32, u64)>>::new();
        for (key, count) in counted.into_iter().chain(self.totals.errors()) {
            errors.entry(key.edge).or_default().push((key.kind, key.number, count));
        }
        let clock = Clock::now();
        let mut found = Vec::with_capacity(edges.len());
        let mut other = EdgeCounts::EMPTY;
        let mut add = |key: &EdgeKey, counts: &EdgeCounts, errors: &[(u32, u32, u64)]| {
            if !counts.is_empty() || !errors.is_empty() {
                found.push(self.resolver.edge(&self.kernel, key, counts, errors, &clock));
            }
        };
        for (key, counts) in edges {
            if key == EdgeKey::OTHER {
                other = counts;
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
        Ok(Reading { edges: found, completeness: self.completeness()? })
    }

    /// What tracing cost; run times only with [`Options::statistics`].
    pub fn cost(&self) -> Cost {
        let runs = self.kernel.programs().filter_map(|(name, program)| {
            let runs = kernel::program_runs(program.fd().ok()?.as_fd()).ok()?;
            Some((name.to_owned(), Runs { runs: runs.count, nanoseconds: runs.nanoseconds }))
        });
        Cost { cpu_seconds: process_seconds(), programs: runs.collect() }
    }

    fn completeness(&self) -> Result<Completeness, Error> {
        let counters = self.kernel.map("losses").and_then(|map| PerCpuArray::try_from(map).ok());
        let counters: PerCpuArray<_, u64> =
            counters.ok_or_else(|| Error::new("losses", "not in the object"))?;
        let mut losses = [0_u64; LOSSES];
        for (number, sum) in losses.iter_mut().enumerate() {
            let number = u32::try_from(number).expect("there are few");
            let values = counters.get(&number, 0).map_err(|error| failed("losses", &error))?;
            *sum = values.iter().sum();
        }
        let mut missed_events = 0;
        for &name in self.attached {
            let runs = kernel::program_runs(program_fd(&self.kernel, name)?);
            missed_events += runs.map_err(|error| Error::new(name, error))?.missed;
        }
        let [mut folded, lost_updates, untracked_sockets, lost_events, lost_errors] = losses;
        folded += self.totals.folded;
        Ok(Completeness {
            folded,
            lost_updates,
            untracked_sockets,
            lost_events,
            lost_errors,
            missed_events,
        })
    }
}
